# JavaScript.
cp "$PROGRAMS/pages.js" pages.mjs
exec node pages.mjs
