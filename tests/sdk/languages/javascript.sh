# JavaScript: every file is read by node, its declarations by the strictest TypeScript.
source "$TOOLS/follow_readme.sh"
while read -r file; do node --check "$file"; done < <(find quakes planets things nasty alone loner -name '*.*js')
mapfile -t declarations < <(find quakes planets things nasty -name 'index.d.ts')
"$TOOLS/node_modules/.bin/tsc" --noEmit --strict --target ES2022 --module NodeNext --types node \
    --typeRoots "$TOOLS/node_modules/@types" "${declarations[@]}"
for module in nasty/src/index.js loner/loner.mjs; do
    node --input-type=module -e "await import(process.cwd() + '/$module');"
done
for package in quakes planets things nasty; do (cd "$package" && node --test --test-reporter=dot test/*.js); done
for package in quakes planets; do follow_readme "$package"; done
sed 's#"../src/index.js"#"./alone/alone.mjs"#' quakes/examples/first-call.js > alone.mjs
for snippet in quakes things; do
    sed "s#from \"$snippet\"#from \"./$snippet/src/index.js\"#" "snippets/$snippet" > "snippet-$snippet.mjs"
done
for program in main exact; do cp "$PROGRAMS/$program.js" "$program.mjs"; done
for program in alone snippet-quakes snippet-things; do node "$program.mjs"; done
# Where the environment switches off what is verified, too.
for program in exact main; do $BESET NODE_TLS_REJECT_UNAUTHORIZED=0 NODE_NO_WARNINGS=1 NODE_USE_ENV_PROXY=1 node "$program.mjs"; done
