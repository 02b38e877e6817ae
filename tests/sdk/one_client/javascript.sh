# JavaScript.
cp "$PROGRAMS/$PROGRAM.js" program.mjs
exec node program.mjs
