-- The channel to listen to.
SELECT w.channel FROM carteiro.wake_channel AS w;
