//! The backup phrase (BIP-39, 24 English words) and the key it stands for (BIP-44, m/44'/60'/0'/0/0).

use alloy::signers::local::{MnemonicBuilder, coins_bip39::English};
use coins_bip39::{Mnemonic, Wordlist};
use farthing_os::secret::SecretText;
use farthing_values::SecretKey;
use zeroize::Zeroizing;

/// 256 bits of entropy make 24 words.
pub(super) const ENTROPY_BYTES: usize = 32;
/// The path of the first account of an Ethereum wallet.
pub(super) const DERIVATION_PATH: &str = "m/44'/60'/0'/0/0";

pub(super) type Entropy = Zeroizing<[u8; ENTROPY_BYTES]>;

/// The text is no valid phrase. It is not repeated here: it may be nearly right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a backup phrase: enter all 24 words in order, separated by single spaces")]
pub struct PhraseError;

/// The words for `entropy`.
pub(super) fn phrase(entropy: &Entropy) -> Result<SecretText, PhraseError> {
    let mnemonic = Mnemonic::<English>::new_from_entropy((**entropy).into());
    Ok(SecretText::new(mnemonic.to_phrase()))
}

/// Decodes what 24 words stand for; `None` for fewer words, and for what is no phrase.
pub(super) fn entropy(phrase: &SecretText) -> Option<Entropy> {
    // Eleven bits a word, the last eight of them a checksum.
    let mut bits = Zeroizing::new(Vec::with_capacity(264));
    for word in phrase.expose().split(' ') {
        let index = English::get_index(word).ok()?;
        bits.extend((0..11).rev().map(|bit| index >> bit & 1 == 1));
    }
    let mut entropy = Zeroizing::new([0; ENTROPY_BYTES]);
    if bits.len() != 8 * ENTROPY_BYTES + 8 {
        return None;
    }
    for (byte, bits) in entropy.iter_mut().zip(bits.chunks(8)) {
        *byte = bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    }
    let again = self::phrase(&entropy).ok()?;
    (again.expose() == phrase.expose()).then_some(entropy)
}

/// The private key that every wallet derives from `phrase`, without a BIP-39 password.
pub(super) fn derive(phrase: &SecretText) -> Result<SecretKey, PhraseError> {
    let signer = MnemonicBuilder::<English>::default()
        .phrase(phrase.expose())
        .derivation_path(DERIVATION_PATH)
        .and_then(|builder| builder.build())
        .map_err(|_| PhraseError)?;
    let bytes = Zeroizing::new(signer.to_bytes().0);
    SecretKey::from_bytes(&bytes).map_err(|_| PhraseError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_has_the_address_other_wallets_give_it() {
        // The test phrase that development chains fund, and the last of BIP-39's own 24-word vectors of zeros.
        for (phrase, address) in [
            (
                "test test test test test test test test test test test junk",
                "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
            ),
            (&format!("{}art", "abandon ".repeat(23)), "0xF278cF59F82eDcf871d630F28EcC8056f25C1cdb"),
        ] {
            assert_eq!(derive(&SecretText::new(phrase)).unwrap().address().to_string(), address);
        }
    }

    #[test]
    fn entropy_becomes_the_words_of_the_standard() {
        let zeros = phrase(&Zeroizing::new([0; 32])).unwrap();
        assert_eq!(zeros.expose(), format!("{}art", "abandon ".repeat(23)));
        assert_eq!(entropy(&zeros), Some(Zeroizing::new([0; 32])));
        let mixed = Zeroizing::new(std::array::from_fn(|at| u8::try_from(at * 7).unwrap_or(0x5a)));
        assert_eq!(entropy(&phrase(&mixed).unwrap()), Some(mixed));
        for none in
            ["", "abandon", "test test test test test test test test test test test junk", "nothing at all"]
        {
            assert_eq!(entropy(&SecretText::new(none)), None, "{none}");
        }
        assert_eq!(entropy(&SecretText::new("abandon ".repeat(24).trim_end())), None, "the checksum counts");
        let ones = phrase(&Zeroizing::new([0xff; 32])).unwrap();
        assert_eq!(ones.expose(), format!("{}vote", "zoo ".repeat(23)));
    }

    #[test]
    fn a_mistyped_phrase_is_refused_without_being_repeated() {
        let error = derive(&SecretText::new(format!("{}zoo", "abandon ".repeat(23)))).unwrap_err();
        assert!(!error.to_string().contains("abandon"));
    }
}
