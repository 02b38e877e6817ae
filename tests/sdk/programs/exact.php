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
