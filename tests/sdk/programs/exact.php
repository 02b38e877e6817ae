<?php

// What is written and read exactly, and what errors tell: see tests/tests/sdk.

declare(strict_types=1);

require 'things/autoload.php';

$client = new Things\Client();
$sent = new Things\Thing(
    label: 'php',
    count: 9007199254740993,
    nullable: null,
    huge: '18446744073709551615',
    both: null,
    pet: new Things\Dog(kind: 'dog', name: 'Rex'),
    loose: 7,
);
$answer = $client->keepThing($sent);
$kept = $answer->value;
if ($kept != $sent) {
    exit("it is not what was sent\n");
}
echo "exact {$kept->count} {$kept->huge} {$kept->pet->name} {$kept->loose} {$answer->charged}\n";

try {
    $client->getThing('missing');
} catch (Things\ServiceError $error) {
    echo "missing {$error->answer->status} ", json_encode($error->charged), "\n";
}
try {
    (new Things\Client(baseUrl: getenv('DROPPING_THINGS_URL'), maxRetries: 0))->getThing('long');
} catch (Things\ConnectionFailed $error) {
    echo 'unknown ', json_encode($error->charged), "\n";
}
foreach (['dripping' => '', 'dripping-headers' => '/headers'] as $name => $path) {
    try {
        (new Things\Client(baseUrl: getenv('DRIPPING_URL') . $path, timeout: 2.0, maxRetries: 0))->getThing('slow');
    } catch (Things\FarthingError $error) {
        echo "{$name} ", json_encode($error->charged), "\n";
    }
}
foreach (explode(' ', getenv('LEAVING_URLS')) as $node) {
    [$name, $url] = explode('=', $node);
    try {
        (new Things\Client(baseUrl: $url, maxRetries: 1))->getThing('gone');
    } catch (Things\FarthingError $error) {
        echo "{$name} ", json_encode($error->charged), "\n";
    }
}
$settings = [
    ['timeout', 0.0], ['maxRetries', -1], ['maxPrice', '1e-05'], ['baseUrl', 'https://localhost:notaport'],
    ['baseUrl', 'http://127.0.0.1.example.com'], ['baseUrl', 'https://localhost:3000/?x'],
    ['baseUrl', 'https://u:p@localhost:3000'], ['secret', "a\nb"], ['caFile', '/nothing/here'],
];
foreach ($settings as [$name, $value]) {
    try {
        new Things\Client(...[$name => $value]);
        exit("{$name} is taken\n");
    } catch (InvalidArgumentException $error) {
        if (!str_starts_with($error->getMessage(), $name)) {
            exit("{$name}: {$error->getMessage()}\n");
        }
    }
}
echo "settings refused\n";
