module {{ package.name }}

go 1.24
