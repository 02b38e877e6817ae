# TypeScript, at its strictest.
source "$TOOLS/typescript.sh"
cp "$PROGRAMS/$PROGRAM.ts" .
strictly "$PROGRAM.ts"
exec node "dist/$PROGRAM.js"
