#if !canImport(CryptoKit)
  package protocol HashFunction {
    static var algorithm: DigestAlgorithm { get }
  }

  package struct HashDigest: Sendable, Hashable, Sequence {
    let bytes: [UInt8]

    package func makeIterator() -> IndexingIterator<[UInt8]> { bytes.makeIterator() }
  }

  /// An incremental digest.
  package struct RunningHash<Function: HashFunction>: HashFunction, Sendable {
    package typealias Digest = HashDigest

    package static var algorithm: DigestAlgorithm { Function.algorithm }

    private var context = DigestContext(Function.algorithm)

    package init() {}

    package mutating func update(data: some Collection<UInt8>) {
      if !isKnownUniquelyReferenced(&context) { context = DigestContext(copying: context) }
      context.update(data)
    }

    /// Returns the digest so far; more bytes may follow.
    package func finalize() -> HashDigest { HashDigest(bytes: DigestContext(copying: context).finish()) }

    package static func hash(data: some Collection<UInt8>) -> HashDigest {
      HashDigest(bytes: algorithm.digest(of: data))
    }
  }

  /// SHA-256 (FIPS 180-4), 32 bytes.
  package typealias SHA256 = RunningHash<SHA256Name>

  /// SHA-512 (FIPS 180-4), 64 bytes.
  package typealias SHA512 = RunningHash<SHA512Name>

  /// Broken digests that protocols still require.
  package enum Insecure {
    /// SHA-1 (FIPS 180-4), 20 bytes.
    package typealias SHA1 = RunningHash<SHA1Name>

    /// MD5 (RFC 1321), 16 bytes.
    package typealias MD5 = RunningHash<MD5Name>
  }

  package enum SHA256Name: HashFunction {
    package static let algorithm = DigestAlgorithm("SHA2-256", length: 32)
  }

  package enum SHA512Name: HashFunction {
    package static let algorithm = DigestAlgorithm("SHA2-512", length: 64)
  }

  package enum SHA1Name: HashFunction {
    package static let algorithm = DigestAlgorithm("SHA1", length: 20)
  }

  package enum MD5Name: HashFunction {
    package static let algorithm = DigestAlgorithm("MD5", length: 16)
  }
#endif
