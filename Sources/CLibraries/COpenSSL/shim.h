#pragma once

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

// What takes several calls of OpenSSL 3 one after the other, each as one function: 1 where it was done, else 0. Where what was given can be
// refused, 0 says that, and -1 that the library failed: no memory is left, or the algorithm is not there.

/// The expanded key of HKDF (RFC 5869) with a digest of this name.
static inline int lazaret_hkdf(
    OSSL_LIB_CTX *library, const char *digest, const unsigned char *key, size_t key_size, const unsigned char *salt,
    size_t salt_size, const unsigned char *info, size_t info_size, unsigned char *out, size_t out_size) {
  EVP_KDF *function = EVP_KDF_fetch(library, "HKDF", NULL);
  EVP_KDF_CTX *context = function ? EVP_KDF_CTX_new(function) : NULL;
  EVP_KDF_free(function);
  if (!context) return 0;
  OSSL_PARAM parameters[5];
  size_t count = 0;
  parameters[count++] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)digest, 0);
  parameters[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)key, key_size);
  // No salt is the same as zeros, which is what OpenSSL takes then.
  if (salt_size) parameters[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)salt, salt_size);
  if (info_size) parameters[count++] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)info, info_size);
  parameters[count] = OSSL_PARAM_construct_end();
  int done = EVP_KDF_derive(context, out, out_size, parameters) == 1;
  EVP_KDF_CTX_free(context);
  return done;
}

/// Encrypts with a key of 32 bytes and a nonce of 12, and gives the tag of 16 bytes.
static inline int lazaret_seal(
    const EVP_CIPHER *cipher, const unsigned char *key, const unsigned char *nonce, const unsigned char *in, int size,
    unsigned char *out, unsigned char *tag) {
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int written = 0, rest = 0;
  int done = context && EVP_EncryptInit_ex2(context, cipher, key, nonce, NULL) == 1 &&
             (size == 0 || EVP_EncryptUpdate(context, out, &written, in, size) == 1) &&
             EVP_EncryptFinal_ex(context, out + written, &rest) == 1 && written + rest == size &&
             EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1;
  EVP_CIPHER_CTX_free(context);
  return done;
}

/// Decrypts what was encrypted with the same key and nonce; 0 where it is not what the tag was made of.
static inline int lazaret_open(
    const EVP_CIPHER *cipher, const unsigned char *key, const unsigned char *nonce, const unsigned char *in, int size,
    const unsigned char *tag, unsigned char *out) {
  EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
  int written = 0, rest = 0, done = -1;
  if (context && EVP_DecryptInit_ex2(context, cipher, key, nonce, NULL) == 1 &&
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, (void *)tag) == 1 &&
      (size == 0 || EVP_DecryptUpdate(context, out, &written, in, size) == 1)) {
    // The last call compares the tags.
    done = EVP_DecryptFinal_ex(context, out + written, &rest) == 1 && written + rest == size;
  }
  EVP_CIPHER_CTX_free(context);
  if (done != 1 && size > 0) OPENSSL_cleanse(out, (size_t)size);
  return done;
}

/// The public key of an X25519 secret key, both of 32 bytes.
static inline int lazaret_x25519_public(OSSL_LIB_CTX *library, const unsigned char *secret, unsigned char *out) {
  size_t size = 32;
  EVP_PKEY *key = EVP_PKEY_new_raw_private_key_ex(library, "X25519", NULL, secret, 32);
  int done = key && EVP_PKEY_get_raw_public_key(key, out, &size) == 1 && size == 32;
  EVP_PKEY_free(key);
  return done;
}

/// What an X25519 secret key and another's public key have in common, 32 bytes; 0 where the other is of low order.
static inline int lazaret_x25519_shared(
    OSSL_LIB_CTX *library, const unsigned char *secret, const unsigned char *other, unsigned char *out) {
  size_t size = 32;
  int done = -1;
  EVP_PKEY *key = EVP_PKEY_new_raw_private_key_ex(library, "X25519", NULL, secret, 32);
  EVP_PKEY *peer = EVP_PKEY_new_raw_public_key_ex(library, "X25519", NULL, other, 32);
  EVP_PKEY_CTX *context = key && peer ? EVP_PKEY_CTX_new_from_pkey(library, key, NULL) : NULL;
  if (context && EVP_PKEY_derive_init(context) == 1 && EVP_PKEY_derive_set_peer(context, peer) == 1) {
    // All that the last call refuses is a product of zero, of which a note stays behind.
    ERR_set_mark();
    done = EVP_PKEY_derive(context, out, &size) == 1 && size == 32;
    ERR_pop_to_mark();
  }
  EVP_PKEY_CTX_free(context);
  EVP_PKEY_free(peer);
  EVP_PKEY_free(key);
  return done;
}
