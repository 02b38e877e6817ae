//! Python: dataclasses, the standard library alone, clean under `mypy --strict`.

use crate::profile::{
    Case, CodePoint, Doc, Literal, Names, Output, Packages, PlainCode, Profile, Registry, RequestForm,
    Syntax, Types, template,
};

pub(crate) static PROFILE: Profile = Profile {
    needs: "Python 3.10 or later",
    templates: &[
        template!("python", "runtime.py"),
        template!("python", "models.py"),
        template!("python", "client.py"),
        template!("python", "init.py"),
        template!("python", "single.py"),
        template!("python", "README.md"),
        template!("python", "pyproject.toml"),
        template!("python", "example.py"),
        template!("python", "test.py"),
        template!("python", "snippet.py"),
        template!("python", "plain.py"),
        template!("python", "py.typed"),
    ],
    files: &[
        Output { template: "README.md", path: "README.md" },
        Output { template: "example.py", path: "examples/first_call.py" },
        Output { template: "init.py", path: "src/{{ package.snake }}/__init__.py" },
        Output { template: "client.py", path: "src/{{ package.snake }}/client.py" },
        Output { template: "models.py", path: "src/{{ package.snake }}/models.py" },
        Output { template: "runtime.py", path: "src/{{ package.snake }}/_runtime.py" },
        Output { template: "py.typed", path: "src/{{ package.snake }}/py.typed" },
        Output { template: "test.py", path: "tests/test_client.py" },
        Output { template: "pyproject.toml", path: "pyproject.toml" },
    ],
    single_file: Output { template: "single.py", path: "{{ package.snake }}.py" },
    snippet: "snippet.py",
    plain: Some(PlainCode {
        template: "plain.py",
        request: RequestForm::Members {
            indent: 4,
            words: ["None", "True", "False"],
            prototype: "\"__proto__\"",
        },
    }),
    packages: Packages {
        registry: Registry::Kebab,
        taken: "abc aifc antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb \
        binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop \
        collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg \
        crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email \
        encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib \
        functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html \
        http idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 \
        linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib \
        msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse \
        os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix \
        posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri \
        random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve \
        shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile \
        sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable \
        sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time \
        timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types \
        typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound \
        wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo",
    },
    names: Names {
        types: Case::Pascal,
        operations: Case::Snake,
        parameters: Case::Snake,
        members: Case::Snake,
        choices: Case::Shouty,
        variants: Case::Pascal,
        // From `bool` on: annotations beside these names could not mean the built-in types any more.
        keywords: "False None True and as assert async await break class continue def del elif else except \
        finally for from global if import in is lambda nonlocal not or pass raise return try while with \
        yield self cls bool bytes dict float int list str object property super",
        taken_types: "Annotated Answer AnswerError Any ApiError BadRequest CallOptions Client \
        ConnectionFailed Decimal Enum FarthingError Generic IntEnum Iterator Json Mapping NodeError \
        NotFound Optional PaymentRefused Raw ServiceError T Tagged Transport TypeAlias TypeVar \
        Unauthorized Unavailable Union Unset UNSET Exception ValueError OSError Warning Sequence",
        taken_operations: "call transport",
        taken_parameters: "body options client page_ items asked max_pages answer",
        taken_members: "additional field dataclass enum",
        taken_choices: "name value mro",
        keeps_wire_names: false,
        ignores_case: false,
    },
    types: Types {
        any: "Any",
        boolean: "bool",
        int32: "int",
        int53: "int",
        int64: "int",
        uint64: "int",
        number: "float",
        text: "str",
        bytes: "bytes",
        array: "list[{}]",
        map: "dict[str, {}]",
        nullable: "Optional[{}]",
        named: "{}",
        recursive: "{}",
        boxed: &[],
    },
    syntax: Syntax {
        literal: Literal::Quoted { escaped: &[], code_point: CodePoint::Wide },
        comment: "#: ",
        doc: Doc::TripleQuotes,
    },
};
