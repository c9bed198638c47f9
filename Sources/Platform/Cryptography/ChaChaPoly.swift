#if !canImport(CryptoKit)
  package enum CryptographyError: Error {
    case incorrectParameterSize

    case authenticationFailure

    /// The other key is of low order and keeps no secret.
    case unusableKey
  }

  /// Authenticated encryption (ChaCha20-Poly1305, RFC 8439).
  package enum ChaChaPoly {
    /// A single-use number of 12 bytes.
    package struct Nonce: Sendable {
      let bytes: [UInt8]

      package init(data: some Collection<UInt8>) throws(CryptographyError) {
        guard data.count == 12 else { throw .incorrectParameterSize }
        bytes = Array(data)
      }
    }

    package struct SealedBox: Sendable {
      package let nonce: Nonce

      package let ciphertext: [UInt8]

      package let tag: [UInt8]

      package init(nonce: Nonce, ciphertext: some Collection<UInt8>, tag: some Collection<UInt8>)
        throws(CryptographyError)
      {
        guard tag.count == 16 else { throw .incorrectParameterSize }
        self.nonce = nonce
        self.ciphertext = Array(ciphertext)
        self.tag = Array(tag)
      }
    }

    /// Encrypts under a key of 32 bytes.
    package static func seal(_ message: some Collection<UInt8>, using key: SymmetricKey, nonce: Nonce)
      throws(CryptographyError) -> SealedBox
    {
      guard let (sealed, tag) = OpenSSL.seal(message, key: key.secret, nonce: nonce.bytes) else {
        throw .incorrectParameterSize
      }
      return try SealedBox(nonce: nonce, ciphertext: sealed, tag: tag)
    }

    /// Decrypts.
    ///
    /// - Throws: if authentication fails.
    package static func open(_ box: SealedBox, using key: SymmetricKey) throws(CryptographyError) -> [UInt8] {
      guard let opened = OpenSSL.open(box.ciphertext, tag: box.tag, key: key.secret, nonce: box.nonce.bytes) else {
        throw .authenticationFailure
      }
      return opened
    }
  }
#endif
