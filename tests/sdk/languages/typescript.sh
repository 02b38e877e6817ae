# TypeScript: each package as it is published, with its test and its example; then the programs, and what is one file.
source "$TOOLS/typescript.sh"
tsc="$TOOLS/node_modules/.bin/tsc"
types=(--typeRoots "$TOOLS/node_modules/@types")
for package in quakes planets things nasty; do
    "$tsc" -p "$package" "${types[@]}"
    (cd "$package" && node --test --test-reporter=dot dist/test/)
done
for package in quakes planets; do node "$package/dist/examples/first-call.js"; done
cp "$PROGRAMS"/{main,exact}.ts .
sed 's#"../src/index.js"#"./alone/alone.js"#' quakes/examples/first-call.ts > alone.ts
for snippet in quakes things; do
    sed "s#from \"$snippet\"#from \"./$snippet/src/index.js\"#" "snippets/$snippet" > "snippet-$snippet.ts"
done
cp snippets/plain snippet-plain.ts
strictly {main,exact,alone}.ts loner/loner.ts snippet-{quakes,things,plain}.ts
for program in alone snippet-quakes snippet-things; do node "dist/$program.js"; done
NODE_EXTRA_CA_CERTS="$FARTHING_CA_FILE" node dist/snippet-plain.js
# Where the environment switches off what is verified, too.
for program in exact main; do $BESET NODE_TLS_REJECT_UNAUTHORIZED=0 NODE_NO_WARNINGS=1 NODE_USE_ENV_PROXY=1 node "dist/$program.js"; done
