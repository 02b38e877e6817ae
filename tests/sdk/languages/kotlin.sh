# Kotlin: all at once, because the compiler takes long to start; every warning is an error.
compiler="$TOOLS/node_modules/kotlin-compiler"
mapfile -t sources < <(find quakes planets nasty -path '*/src/main/*' -name '*.kt')
java -Xmx1g -cp "$compiler/lib/kotlin-compiler.jar:$compiler/lib/kotlin-stdlib.jar" \
    org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -kotlin-home "$compiler" -no-reflect -Werror -jvm-target 17 \
    -d program.jar "${sources[@]}" "$PROGRAMS/Main.kt"
exec java -cp "program.jar:$compiler/lib/kotlin-stdlib.jar" MainKt
