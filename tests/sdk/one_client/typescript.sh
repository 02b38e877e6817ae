# TypeScript, at its strictest.
cp "$PROGRAMS/$PROGRAM.ts" .
echo '{"type": "module"}' > package.json
cat > tsconfig.json <<END
{
  "compilerOptions": {
    "target": "ES2022", "module": "NodeNext", "lib": ["ES2022"], "strict": true, "noUncheckedIndexedAccess": true,
    "exactOptionalPropertyTypes": true, "types": ["node"], "typeRoots": ["$TOOLS/node_modules/@types"], "rootDir": ".", "outDir": "dist"
  },
  "files": ["$PROGRAM.ts"]
}
END
"$TOOLS/node_modules/.bin/tsc" -p .
exec node "dist/$PROGRAM.js"
