internal import Cryptography
internal import HTTPServer
internal import TusProtocol

/// What the sum of a part must be, by an algorithm that is known here.
struct PartChecksum: Sendable {
  /// The algorithms, as `Tus-Checksum-Algorithm` lists them.
  static let algorithms = ["sha1", "sha256"]

  private let expected: UploadChecksum

  /// A sum that is on its way.
  enum Running {
    case sha1(Insecure.SHA1)
    case sha256(SHA256)

    mutating func update(_ bytes: [UInt8]) {
      switch self {
      case .sha1(var hash):
        hash.update(data: bytes)
        self = .sha1(hash)
      case .sha256(var hash):
        hash.update(data: bytes)
        self = .sha256(hash)
      }
    }
  }

  /// What a field asks for.
  ///
  /// - Throws: ``TusRefusal`` 400 where it is malformed, or of an algorithm that is not known.
  init(_ field: String) throws(TusRefusal) {
    guard let sum = UploadChecksum(field) else {
      throw TusRefusal(.badRequest, "checksum-malformed", "Upload-Checksum is malformed.")
    }
    let length = ["sha1": 20, "sha256": 32][sum.algorithm]
    guard let length else {
      throw TusRefusal(.badRequest, "checksum-unknown", "The algorithm of Upload-Checksum is not known here.")
    }
    guard sum.sum.count == length else {
      throw TusRefusal(.badRequest, "checksum-malformed", "Upload-Checksum is malformed.")
    }
    expected = sum
  }

  /// A sum of nothing yet.
  var running: Running { expected.algorithm == "sha1" ? .sha1(Insecure.SHA1()) : .sha256(SHA256()) }

  /// Whether a sum is the one that is expected.
  func matches(_ running: Running) -> Bool {
    switch running {
    case .sha1(let hash): Array(hash.finalize()) == expected.sum
    case .sha256(let hash): Array(hash.finalize()) == expected.sum
    }
  }
}
