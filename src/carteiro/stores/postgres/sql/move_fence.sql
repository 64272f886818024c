-- Everything but a move is refused from here on: whoever writes or claims is told.
CREATE OR REPLACE FUNCTION carteiro.refuse_until_moved() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    IF current_setting('carteiro.moving', true) IS DISTINCT FROM 'yes' THEN
        RAISE EXCEPTION 'a move into this database is not finished, or was taken back: see carteiro move'
            USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN NULL;
END
$$;
DO $$
DECLARE
    v_table regclass;
BEGIN
    FOR v_table IN
        SELECT c.oid FROM pg_class AS c
        WHERE c.relnamespace = 'carteiro'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname <> 'migrations'
        ORDER BY c.relname
    LOOP
        EXECUTE format(
            'CREATE OR REPLACE TRIGGER unfinished_move BEFORE INSERT OR UPDATE OR DELETE ON %s '
            'FOR EACH STATEMENT EXECUTE FUNCTION carteiro.refuse_until_moved()', v_table
        );
    END LOOP;
END
$$;
