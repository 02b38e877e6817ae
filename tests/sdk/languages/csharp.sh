# C#: Mono's compiler for Microsoft's runtime, which finds its OpenSSL in a folder of its own.
packages=("$TOOLS"/.venv/lib/python3*/site-packages)
runtime="${packages[0]}/dotnetcore2/bin"
frameworks=("$runtime"/shared/Microsoft.NETCore.App/*)
references=()
for library in "${frameworks[0]}"/System*.dll "${frameworks[0]}"/Microsoft*.dll "${frameworks[0]}"/{netstandard,mscorlib}.dll; do
    case "$library" in *Native* | *WindowsRuntime*) ;; *) references+=("-r:$library") ;; esac
done
compile() {
    mcs -warn:4 -warnaserror -nowarn:1701,1702 -langversion:latest -nostdlib -noconfig "${references[@]}" "$@"
}
mkdir -p openssl
for name in ssl crypto; do
    found=("${packages[0]}"/psycopg2_binary.libs/lib"$name"-*.so.1.1)
    ln -sf "${found[0]}" "openssl/lib$name.so.1.1"
    ln -sf "${found[0]}" "openssl/$(basename "${found[0]}")"
done
export DOTNET_ROOT="$runtime" DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 LD_LIBRARY_PATH="$PWD/openssl"
chmod +x "$runtime/dotnet"
run() {
    echo '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"}}}' > "$1.runtimeconfig.json"
    ${@:2} "$runtime/dotnet" exec "$1.dll"
}
compile -target:library -doc:nasty.xml -out:nasty.dll nasty/src/*.cs
compile -target:library -doc:loner.xml -out:loner.dll loner/*.cs
compile -target:library -doc:clients.xml -out:clients.dll {quakes,planets,things}/src/*.cs alone/*.cs
for package in quakes planets things nasty; do
    library=clients
    if [[ "$package" == nasty ]]; then library=nasty; fi
    compile -r:"$library.dll" -out:"test-$package.dll" "$package/tests/ClientTest.cs"
    run "test-$package"
done
for package in quakes planets; do compile -r:clients.dll -out:"example-$package.dll" "$package/examples/FirstCall.cs"; done
sed 's/\bQuakes\b/Alone/g' quakes/examples/FirstCall.cs > Alone.cs
compile -r:clients.dll -out:example-alone.dll Alone.cs
for snippet in quakes things; do
    {
        printf 'using System;\nusing System.Collections.Generic;\nusing System.Text.Json;\nusing System.Threading.Tasks;\nusing %s;\n' "${snippet^}"
        printf 'public static class Snippet {\npublic static void Main() { Run().GetAwaiter().GetResult(); }\nprivate static async Task Run() {\n'
        cat "snippets/$snippet"
        printf '}\n}\n'
    } > "snippet-$snippet.cs"
    compile -r:clients.dll -out:"snippet-$snippet.dll" "snippet-$snippet.cs"
done
compile -r:clients.dll -doc:exact.xml -out:exact.dll "$PROGRAMS/Exact.cs"
compile -r:clients.dll -doc:main.xml -out:main.dll "$PROGRAMS/Main.cs"
for program in example-quakes example-planets example-alone snippet-quakes snippet-things; do run "$program"; done
for program in exact main; do run "$program" $BESET; done
