<?php

// What can be told without a node: php tests/client_test.php

declare(strict_types=1);

require __DIR__ . '/../autoload.php';

try {
    new {{ package.pascal }}\Client('http://node.example', 'a-secret');
    exit("the secret must not travel in the open\n");
} catch (InvalidArgumentException) {
}
ob_start();
var_dump(new {{ package.pascal }}\Client(null, 'a-secret', __FILE__));
if (str_contains((string) ob_get_clean(), 'a-secret')) {
    exit("the secret must not be shown\n");
}
try {
    (new {{ package.pascal }}\Client('https://127.0.0.1:1', 'none', __FILE__, maxRetries: 0))->call('GET', '/');
    exit("nobody is there\n");
} catch ({{ package.pascal }}\FarthingError $error) {
    echo $error->charged === false ? "passed\n" : "it must cost nothing\n";
}
