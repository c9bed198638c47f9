#if !canImport(CryptoKit)
  /// A shared key; its memory is overwritten after use.
  package struct SymmetricKey: Sendable {
    let secret: SecretBytes

    init(_ secret: SecretBytes) { self.secret = secret }

    package init(data: some Collection<UInt8>) { secret = SecretBytes(data) }
  }

  /// RFC 2104.
  package enum HMAC<Hash: HashFunction> {
    package static func authenticationCode(for message: some Collection<UInt8>, using key: SymmetricKey) -> HashDigest {
      HashDigest(bytes: OpenSSL.authenticationCode(of: message, key: key.secret, algorithm: Hash.algorithm))
    }

    package static func isValidAuthenticationCode(
      _ code: [UInt8], authenticating message: some Collection<UInt8>, using key: SymmetricKey
    ) -> Bool {
      OpenSSL.isEqual(code, authenticationCode(for: message, using: key).bytes)
    }
  }

  /// RFC 5869.
  package enum HKDF<Hash: HashFunction> {
    package static func deriveKey(
      inputKeyMaterial key: SymmetricKey, salt: some Collection<UInt8>, info: some Collection<UInt8>,
      outputByteCount length: Int
    ) -> SymmetricKey {
      SymmetricKey(
        OpenSSL.derivedKey(of: key.secret, salt: salt, info: info, algorithm: Hash.algorithm, length: length))
    }
  }
#endif
