#if !canImport(CryptoKit)
  /// The elliptic curve of X25519 (RFC 7748).
  package enum Curve25519 {
    package enum KeyAgreement {
      package struct PrivateKey: Sendable {
        private let secret: SecretBytes

        package init() {
          var generator = SystemRandomNumberGenerator()
          secret = SecretBytes((0..<32).map { _ in UInt8.random(in: 0...255, using: &generator) })
        }

        package init(rawRepresentation bytes: some Collection<UInt8>) throws(CryptographyError) {
          guard bytes.count == 32 else { throw .incorrectParameterSize }
          secret = SecretBytes(bytes)
        }

        package var rawRepresentation: [UInt8] { secret.bytes }

        package var publicKey: PublicKey { PublicKey(OpenSSL.publicKey(of: secret)) }

        /// Computes the shared secret.
        ///
        /// - Throws: if the other key is of low order, which makes the secret public.
        package func sharedSecretFromKeyAgreement(with other: PublicKey) throws(CryptographyError) -> SharedSecret {
          guard let shared = OpenSSL.sharedSecret(secret, with: other.rawRepresentation) else { throw .unusableKey }
          return SharedSecret(secret: shared)
        }
      }

      package struct PublicKey: Sendable {
        package let rawRepresentation: [UInt8]

        init(_ bytes: [UInt8]) { rawRepresentation = bytes }

        package init(rawRepresentation bytes: some Collection<UInt8>) throws(CryptographyError) {
          guard bytes.count == 32 else { throw .incorrectParameterSize }
          rawRepresentation = Array(bytes)
        }
      }
    }
  }

  package struct SharedSecret: Sendable {
    let secret: SecretBytes

    package func hkdfDerivedSymmetricKey<Hash: HashFunction>(
      using hash: Hash.Type, salt: some Collection<UInt8>, sharedInfo: some Collection<UInt8>, outputByteCount: Int
    ) -> SymmetricKey {
      HKDF<Hash>.deriveKey(
        inputKeyMaterial: SymmetricKey(secret), salt: salt, info: sharedInfo, outputByteCount: outputByteCount)
    }
  }
#endif
