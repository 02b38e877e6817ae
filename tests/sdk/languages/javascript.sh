# JavaScript: every file is read by node, its declarations by the strictest TypeScript.
while read -r file; do node --check "$file"; done < <(find quakes planets nasty -name '*.js')
mapfile -t declarations < <(find quakes planets nasty -name 'index.d.ts')
"$TOOLS/node_modules/.bin/tsc" --noEmit --strict --target ES2022 --module NodeNext --types node \
    --typeRoots "$TOOLS/node_modules/@types" "${declarations[@]}"
node --input-type=module -e 'await import(process.cwd() + "/nasty/src/index.js");'
for package in quakes planets nasty; do (cd "$package" && node --test --test-reporter=dot test/*.js); done
cp "$PROGRAMS/main.js" main.mjs
exec node main.mjs
