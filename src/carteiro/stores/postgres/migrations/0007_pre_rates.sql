-- How fast each provider is called by all processes together: see policy/rates.py. Rates are calls a second; stays is JSON,
-- until when each process counts. One row is written again and again: room beside it keeps its index as it is.
CREATE TABLE carteiro.rates (
    provider text COLLATE "C" PRIMARY KEY,
    ceiling double precision,
    cut_to double precision,
    peak double precision NOT NULL,
    cut_at_us bigint NOT NULL,
    next_us bigint NOT NULL,
    stays text NOT NULL,
    trouble text -- JSON: why it was left alone last, when, and until when
) WITH (fillfactor = 50);
