# Kotlin: every warning is an error.
source "$TOOLS/jvm.sh"
compiler="$TOOLS/node_modules/kotlin-compiler"
java "${SHORT[@]}" -Xmx1g -cp "$compiler/lib/kotlin-compiler.jar:$compiler/lib/kotlin-stdlib.jar" \
    org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -kotlin-home "$compiler" -no-reflect -Werror -jvm-target 17 \
    -d program.jar "$PACKAGE"/src/main/kotlin/*.kt "$PROGRAMS/${PROGRAM^}.kt"
exec java "${SHORT[@]}" -cp "program.jar:$compiler/lib/kotlin-stdlib.jar" "${PROGRAM^}Kt"
