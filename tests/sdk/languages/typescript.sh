# TypeScript: each package as it is published, then the program with them.
tsc="$TOOLS/node_modules/.bin/tsc"
for package in quakes planets nasty; do
    "$tsc" -p "$package" --noEmit --typeRoots "$TOOLS/node_modules/@types"
done
cp "$PROGRAMS/main.ts" .
echo '{"type": "module"}' > package.json
cat > tsconfig.json <<END
{
  "compilerOptions": {
    "target": "ES2022", "module": "NodeNext", "lib": ["ES2022"], "strict": true, "noUncheckedIndexedAccess": true,
    "exactOptionalPropertyTypes": true, "types": ["node"], "typeRoots": ["$TOOLS/node_modules/@types"], "rootDir": ".", "outDir": "dist"
  },
  "files": ["main.ts"]
}
END
"$tsc" -p .
exec node dist/main.js
