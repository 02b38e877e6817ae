# C#: every warning is an error.
source "$TOOLS/csharp.sh"
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
