# TypeScript, at its strictest.
cp "$PROGRAMS/pages.ts" .
echo '{"type": "module"}' > package.json
cat > tsconfig.json <<END
{
  "compilerOptions": {
    "target": "ES2022", "module": "NodeNext", "lib": ["ES2022"], "strict": true, "noUncheckedIndexedAccess": true,
    "exactOptionalPropertyTypes": true, "types": ["node"], "typeRoots": ["$TOOLS/node_modules/@types"], "rootDir": ".", "outDir": "dist"
  },
  "files": ["pages.ts"]
}
END
"$TOOLS/node_modules/.bin/tsc" -p .
exec node dist/pages.js
