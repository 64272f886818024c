-- The statements after which nothing new is accepted or claimed, and jobs stay where they are kept. :text
SELECT format(
    'CREATE TRIGGER moved_%s BEFORE INSERT ON %s %s BEGIN SELECT RAISE(ABORT, %Q); END',
    value ->> 0, value ->> 0, value ->> 1, :text
)
FROM json_each(
    '[["messages", ""], ["parked", "WHEN NEW.is_claimed = 1"], ["overrides", "WHEN NEW.name = ''queue''"]]'
);
