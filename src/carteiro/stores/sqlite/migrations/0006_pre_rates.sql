-- How fast each provider is called by all processes together: see policy/rates.py. Rates are calls a second; stays is JSON,
-- until when each process counts. It is not carried along in a move: calling finds out again.
CREATE TABLE rates (
    provider TEXT PRIMARY KEY,
    ceiling REAL,
    cut_to REAL,
    peak REAL NOT NULL,
    cut_at_us INTEGER NOT NULL,
    next_us INTEGER NOT NULL,
    stays TEXT NOT NULL,
    trouble TEXT -- JSON: why it was left alone last, when, and until when
) STRICT, WITHOUT ROWID;
