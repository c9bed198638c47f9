#if !canImport(CryptoKit)
  internal import COpenSSL

  /// The only caller of OpenSSL's libcrypto, version 3.
  ///
  /// With valid arguments, calls fail only without memory or without the algorithm; both end the process, since neither
  /// concerns the data.
  enum OpenSSL {
    /// A context of its own, unaffected by the system's configuration files, which can remove algorithms.
    ///
    /// OpenSSL's contexts and algorithms are thread-safe.
    nonisolated(unsafe) static let library: OpaquePointer = {
      // Otherwise the library cleans up at exit, while other threads may use it.
      OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
      guard let library = unsafe OSSL_LIB_CTX_new() else { preconditionFailure("libcrypto has no memory left") }
      return unsafe library
    }()

    nonisolated(unsafe) private static let cipher: OpaquePointer = {
      guard let cipher = unsafe EVP_CIPHER_fetch(library, "ChaCha20-Poly1305", nil) else {
        preconditionFailure("libcrypto has no memory left, or no ChaCha20-Poly1305")
      }
      return unsafe cipher
    }()

    static func authenticationCode(
      of message: some Collection<UInt8>, key: SecretBytes, algorithm: DigestAlgorithm
    ) -> [UInt8] {
      var code = [UInt8](repeating: 0, count: algorithm.length)
      let done = unsafe withBytes(message) { message in
        unsafe EVP_Q_mac(
          library, "HMAC", nil, algorithm.name, nil, key.start, key.count, message.baseAddress, message.count, &code,
          code.count, nil) != nil
      }
      precondition(done, "libcrypto has no memory left, or no \(algorithm.name)")
      return code
    }

    static func derivedKey(
      of key: SecretBytes, salt: some Collection<UInt8>, info: some Collection<UInt8>, algorithm: DigestAlgorithm,
      length: Int
    ) -> SecretBytes {
      let derived = SecretBytes(count: length)
      let done = unsafe withBytes(salt) { salt in
        unsafe withBytes(info) { info in
          unsafe lazaret_hkdf(
            library, algorithm.name, key.start, key.count, salt.baseAddress, salt.count, info.baseAddress, info.count,
            derived.start, derived.count) == 1
        }
      }
      precondition(done, "libcrypto has no memory left, or no HKDF")
      return derived
    }

    /// Encrypts with ChaCha20-Poly1305 (RFC 8439); nil if a size is wrong.
    ///
    /// - Parameters:
    ///   - key: 32 bytes.
    ///   - nonce: 12 bytes.
    static func seal(
      _ bytes: some Collection<UInt8>, key: SecretBytes, nonce: [UInt8]
    ) -> (sealed: [UInt8], tag: [UInt8])? {
      guard key.count == 32, nonce.count == 12, let size = Int32(exactly: bytes.count) else { return nil }
      var (sealed, tag) = ([UInt8](repeating: 0, count: bytes.count), [UInt8](repeating: 0, count: 16))
      let done = unsafe withBytes(bytes) {
        unsafe lazaret_seal(cipher, key.start, nonce, $0.baseAddress, size, &sealed, &tag)
      }
      precondition(done == 1, "libcrypto has no memory left")
      return (sealed, tag)
    }

    static func open(_ bytes: some Collection<UInt8>, tag: [UInt8], key: SecretBytes, nonce: [UInt8]) -> [UInt8]? {
      guard key.count == 32, nonce.count == 12, tag.count == 16, let size = Int32(exactly: bytes.count) else {
        return nil
      }
      var opened = [UInt8](repeating: 0, count: bytes.count)
      let done = unsafe withBytes(bytes) {
        unsafe lazaret_open(cipher, key.start, nonce, $0.baseAddress, size, tag, &opened)
      }
      precondition(done >= 0, "libcrypto has no memory left")
      return done == 1 ? opened : nil
    }

    /// X25519 (RFC 7748).
    static func publicKey(of secret: SecretBytes) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: 32)
      let done = unsafe secret.count == 32 && lazaret_x25519_public(library, secret.start, &bytes) == 1
      precondition(done, "libcrypto has no memory left, or no X25519")
      return bytes
    }

    /// Returns nil if the other key is of low order.
    static func sharedSecret(_ secret: SecretBytes, with other: [UInt8]) -> SecretBytes? {
      guard secret.count == 32, other.count == 32 else { return nil }
      let shared = SecretBytes(count: 32)
      let done = unsafe lazaret_x25519_shared(library, secret.start, other, shared.start)
      precondition(done >= 0, "libcrypto has no memory left, or no X25519")
      return done == 1 ? shared : nil
    }

    /// Compares bytes in constant time.
    static func isEqual(_ first: [UInt8], _ second: [UInt8]) -> Bool {
      unsafe first.count == second.count && CRYPTO_memcmp(first, second, first.count) == 0
    }

    static func withBytes<Result>(
      _ bytes: some Collection<UInt8>, _ body: (UnsafeBufferPointer<UInt8>) -> Result
    ) -> Result {
      if let result = bytes.withContiguousStorageIfAvailable(body) { return result }
      return unsafe Array(bytes).withUnsafeBufferPointer(body)
    }
  }

  @safe package struct DigestAlgorithm: @unchecked Sendable {
    let name: String
    let length: Int
    fileprivate let function: OpaquePointer

    init(_ name: String, length: Int) {
      guard let function = unsafe EVP_MD_fetch(OpenSSL.library, name, nil) else {
        preconditionFailure("libcrypto has no memory left, or no \(name)")
      }
      self.name = name
      self.length = length
      unsafe self.function = unsafe function
    }

    func digest(of bytes: some Collection<UInt8>) -> [UInt8] {
      var digest = [UInt8](repeating: 0, count: length)
      let done = unsafe OpenSSL.withBytes(bytes) {
        unsafe EVP_Digest($0.baseAddress, $0.count, &digest, nil, function, nil)
      }
      precondition(done == 1, "libcrypto has no memory left")
      return digest
    }
  }

  /// The state of an incremental digest.
  ///
  /// Mutated by its only owner; sharing copies it.
  @safe final class DigestContext: @unchecked Sendable {
    private let algorithm: DigestAlgorithm
    private let context: OpaquePointer

    private init(of algorithm: DigestAlgorithm) {
      guard let context = unsafe EVP_MD_CTX_new() else { preconditionFailure("libcrypto has no memory left") }
      self.algorithm = algorithm
      unsafe self.context = unsafe context
    }

    convenience init(_ algorithm: DigestAlgorithm) {
      self.init(of: algorithm)
      let done = unsafe EVP_DigestInit_ex2(context, algorithm.function, nil)
      precondition(done == 1, "libcrypto has no memory left")
    }

    convenience init(copying other: DigestContext) {
      self.init(of: other.algorithm)
      let done = unsafe EVP_MD_CTX_copy_ex(context, other.context)
      precondition(done == 1, "libcrypto has no memory left")
    }

    deinit { unsafe EVP_MD_CTX_free(context) }

    func update(_ bytes: some Collection<UInt8>) {
      let done = unsafe OpenSSL.withBytes(bytes) { unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
      precondition(done == 1, "libcrypto has no memory left")
    }

    func finish() -> [UInt8] {
      var digest = [UInt8](repeating: 0, count: algorithm.length)
      let done = unsafe EVP_DigestFinal_ex(context, &digest, nil)
      precondition(done == 1, "libcrypto has no memory left")
      return digest
    }
  }

  /// Bytes overwritten before deallocation.
  @safe final class SecretBytes: @unchecked Sendable {
    private let buffer: UnsafeMutableBufferPointer<UInt8>

    init(count: Int) {
      unsafe buffer = .allocate(capacity: count)
      unsafe buffer.initialize(repeating: 0)
    }

    convenience init(_ bytes: some Collection<UInt8>) {
      self.init(count: bytes.count)
      for (index, byte) in bytes.enumerated() where index < count { unsafe buffer[index] = byte }
    }

    deinit {
      unsafe OPENSSL_cleanse(buffer.baseAddress, buffer.count)
      unsafe buffer.deallocate()
    }

    var count: Int { unsafe buffer.count }

    /// The first byte; never nil, also for an empty key.
    fileprivate var start: UnsafeMutablePointer<UInt8>? { unsafe buffer.baseAddress }

    var bytes: [UInt8] { unsafe Array(buffer) }
  }
#endif
