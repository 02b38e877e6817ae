<?php

// An image in a form and as a body, and a form that is sent twice: see tests/tests/sdk.

declare(strict_types=1);

require 'sizes/autoload.php';

const NAME = 'a "dot".png';

$client = new Sizes\Client();
$content = file_get_contents(NAME);
$form = new Sizes\ImageSizeForm(image: new Sizes\Upload($content, NAME, 'image/png'), note: "Z\u{fc}rich --farthing-sizephp");
$answer = $client->imageSize($form);
$size = $answer->value;
$isSame = json_encode($size->note === $form->note);
echo "form {$size->width} {$size->height} {$size->type} {$size->file} {$isSame} {$size->bytes} {$answer->charged}\n";
$answer = $client->rawImageSize($content);
$size = $answer->value;
echo "raw {$size->width} {$size->height} {$size->type} {$size->bytes} {$answer->charged}\n";
for ($time = 0; $time < 2; $time++) {
    $answer = $client->imageSize($form, options: new Sizes\CallOptions(callId: 'size-php'));
    echo "again {$answer->value->width}\n";
}
