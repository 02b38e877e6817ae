# shellcheck shell=bash
# Sourced: Mono's compiler for Microsoft's runtime, which finds its OpenSSL in a folder of its own, below this one.
packages=("$TOOLS"/.venv/lib/python3*/site-packages)
runtime="${packages[0]}/dotnetcore2/bin"
frameworks=("$runtime"/shared/Microsoft.NETCore.App/*)
references=()
for library in "${frameworks[0]}"/System*.dll "${frameworks[0]}"/Microsoft*.dll "${frameworks[0]}"/{netstandard,mscorlib}.dll; do
    case "$library" in *Native* | *WindowsRuntime*) ;; *) references+=("-r:$library") ;; esac
done
mkdir -p openssl
for name in ssl crypto; do
    found=("${packages[0]}"/psycopg2_binary.libs/lib"$name"-*.so.1.1)
    ln -sf "${found[0]}" "openssl/lib$name.so.1.1"
    ln -sf "${found[0]}" "openssl/$(basename "${found[0]}")"
done
export DOTNET_ROOT="$runtime" DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 LD_LIBRARY_PATH="$PWD/openssl"
chmod +x "$runtime/dotnet"

# The compiler's own arguments.
compile() {
    mcs -warn:4 -warnaserror -nowarn:1701,1702 -langversion:latest -nostdlib -noconfig "${references[@]}" "$@"
}

# The name of a program, and what it is run with.
run() {
    echo '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"}}}' > "$1.runtimeconfig.json"
    "${@:2}" "$runtime/dotnet" exec "$1.dll"
}
