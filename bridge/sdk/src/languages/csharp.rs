//! C#: the standard library alone, in C# 7, which old compilers read as well.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, Profile, Registry, Syntax, Types, template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: ".NET 6 or later",
    templates: &[
        template!("csharp", "Farthing.cs"),
        template!("csharp", "imports.cs"),
        template!("csharp", "Models.cs"),
        template!("csharp", "Client.cs"),
        template!("csharp", "single.cs"),
        template!("csharp", "README.md"),
        template!("csharp", "project.csproj"),
        template!("csharp", "example.cs"),
        template!("csharp", "example.csproj"),
        template!("csharp", "test.cs"),
        template!("csharp", "snippet.cs"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.cs", path: "examples/FirstCall.cs" },
        Output { template: "example.csproj", path: "examples/FirstCall.csproj" },
        Output { template: "Client.cs", path: "src/Client.cs" },
        Output { template: "Models.cs", path: "src/Models.cs" },
        Output { template: "Farthing.cs", path: "src/Farthing.cs" },
        Output { template: "test.cs", path: "tests/ClientTest.cs" },
        Output { template: "project.csproj", path: "{{ package.pascal }}.csproj" },
    ],
    single_file: Output { template: "single.cs", path: "{{ package.pascal }}.cs" },
    snippet: "snippet.cs",
    plain: None,
    packages: Packages { registry: Registry::Kebab, taken: "microsoft mscorlib netstandard system windows" },
    names: Names {
        types: Case::Pascal,
        operations: Case::Pascal,
        parameters: Case::Camel,
        members: Case::Pascal,
        choices: Case::Pascal,
        variants: Case::Pascal,
        keywords: "abstract as async await base bool break byte case catch char checked class const \
        continue decimal default delegate do double dynamic else enum event explicit extern false finally \
        fixed float for foreach goto if implicit in int interface internal is lock long namespace new null \
        object operator out override params partial private protected public readonly record ref return \
        sbyte sealed short sizeof stackalloc static string struct switch this throw true try typeof uint \
        ulong unchecked unsafe ushort using var virtual void volatile when where while yield Equals \
        Finalize FromJson GetHashCode GetType MemberwiseClone ReferenceEquals ToJson ToString System",
        taken_types: "Action Answer AnswerException Array AuthenticationException Body CallOptions \
        CancellationToken Choice Client ConnectionException Console Convert Dictionary Encoding \
        Environment Exception FarthingConfig FarthingException File Func Guid HttpClient IDictionary \
        IDisposable IEnumerable IEquatable IJsonValue IOException IOrNull Json JsonDocument JsonElement \
        JsonException JsonProperty List Math MemoryStream NodeException Nullable Object OpenObject OrNull \
        Regex Sent ServiceException SocketError SocketException Stream String Task TimeSpan Timeout \
        Transport Type Uri Utf8JsonWriter X509Chain StringContent Thread",
        taken_operations: "Body Call Client Dispose Encoding Json",
        taken_parameters: "at body bytes carried each found isJson isMore items maxPages next options sent \
        transport v1",
        taken_members: "AdditionalMembers Json",
        taken_choices: "Json",
        keeps_wire_names: false,
        ignores_case: false,
    },
    types: Types {
        any: "JsonElement",
        boolean: "bool",
        int32: "int",
        int53: "long",
        int64: "long",
        uint64: "ulong",
        number: "double",
        text: "string",
        bytes: "byte[]",
        array: "List<{}>",
        map: "Dictionary<string, {}>",
        nullable: "{}",
        named: "{}",
        recursive: "{}",
        boxed: &[],
    },
    syntax: Syntax {
        literal: Literal::Quoted { escaped: &[], code_point: CodePoint::Wide },
        comment: "// ",
        doc: Doc::XmlLines,
    },
};
