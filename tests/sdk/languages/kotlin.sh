# Kotlin: all at once, because the compiler takes long to start; every warning is an error.
source "$TOOLS/jvm.sh"
compiler="$TOOLS/node_modules/kotlin-compiler"
mapfile -t sources < <(find quakes planets things nasty alone loner -name '*.kt' -not -path '*/examples/*')
mkdir -p programs
for package in quakes planets; do cp "$package/examples/FirstCall.kt" "programs/Example_$package.kt"; done
sed 's/\bquakes\b/alone/g' quakes/examples/FirstCall.kt > programs/Example_alone.kt
for snippet in quakes things; do
    {
        printf 'package snippet_%s\n\nimport %s.*\n\npublic fun main() {\n' "$snippet" "$snippet"
        cat "snippets/$snippet"
        printf '}\n'
    } > "programs/Snippet_$snippet.kt"
done
cp snippets/plain programs/Plain.kt
java "${SHORT[@]}" -Xmx1500m -cp "$compiler/lib/kotlin-compiler.jar:$compiler/lib/kotlin-stdlib.jar" \
    org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -kotlin-home "$compiler" -no-reflect -Werror -jvm-target 17 \
    -d program.jar "${sources[@]}" programs/*.kt "$PROGRAMS"/{Main,Exact}.kt
run() { java "${SHORT[@]}" -cp "program.jar:$compiler/lib/kotlin-stdlib.jar" "$@"; }
for package in quakes planets things nasty; do run "$package.ClientTestKt"; done
for program in Example_quakes Example_planets Example_alone snippet_quakes.Snippet_quakes snippet_things.Snippet_things Plain; do
    run "${program}Kt"
done
for program in Exact Main; do $BESET java "${SHORT[@]}" $JVM_PROXY -cp "program.jar:$compiler/lib/kotlin-stdlib.jar" "${program}Kt"; done
