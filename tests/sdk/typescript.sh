# shellcheck shell=bash
# Sourced: compiles these files at TypeScript's strictest into `dist`.
strictly() {
    local files
    files="$(printf ', "%s"' "$@")"
    echo '{"type": "module"}' > package.json
    cat > tsconfig.json <<END
{
  "compilerOptions": {
    "target": "ES2022", "module": "NodeNext", "lib": ["ES2022"], "strict": true, "noUncheckedIndexedAccess": true,
    "exactOptionalPropertyTypes": true, "types": ["node"], "typeRoots": ["$TOOLS/node_modules/@types"], "rootDir": ".", "outDir": "dist"
  },
  "files": [${files:2}]
}
END
    "$TOOLS/node_modules/.bin/tsc" -p .
}
