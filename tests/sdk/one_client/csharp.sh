# C#: every warning is an error.
source "$TOOLS/csharp.sh"
compile -doc:program.xml -out:program.dll "$PACKAGE"/src/*.cs "$PROGRAMS/${PROGRAM^}.cs"
run program
