-- Open to all again, with the triggers that hang on it.
DROP FUNCTION carteiro.refuse_until_moved() CASCADE;
