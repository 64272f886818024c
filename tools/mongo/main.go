// A MongoDB-protocol server for tests: FerretDB on SQLite. Usage: mongo ADDRESS FOLDER
//
// FerretDB's own program cannot be built from its module alone, because a generated file is missing there; its library can.
package main

import (
	"context"
	"log"
	"log/slog"
	"os"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: os.Args[1]},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Handler:   "sqlite",
		SQLiteURL: "file:" + os.Args[2] + "/",
	})
	if err != nil {
		log.Fatal(err)
	}
	// No signal is caught: SQLite's log needs no good-bye, and clients that are connected would delay the end.
	if err := server.Run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
