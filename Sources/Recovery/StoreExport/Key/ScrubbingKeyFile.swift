internal import Scrubbing
internal import StoreFiles
internal import SystemPackage

/// The scrubbing key of a home: `Keys/scrubbing.key`, its owner's alone, made when it is first needed.
///
/// Two scrubbed bundles of one owner have the same pseudonyms by it. It never goes into a bundle.
struct ScrubbingKeyFile {
  /// Where it is, within a home.
  static let place: FilePath = "Keys/scrubbing.key"

  private let path: FilePath
  private let fileSystem: FileSystem

  init(home: FilePath, in fileSystem: FileSystem) {
    path = home.pushing(Self.place)
    self.fileSystem = fileSystem
  }

  /// The key.
  ///
  /// - Throws: `bundle-request` where the file is none; what the file system says.
  func key() throws -> ScrubbingKey {
    if let key = try read() { return key }
    try fileSystem.makeDirectory(path.folder, permissions: .ownerReadWriteExecute)
    var generator = SystemRandomNumberGenerator()
    let bytes = (0..<ScrubbingKey.length).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let text = bytes.hexadecimal + "\n"
    do throws(FileError) {
      try fileSystem.writeAtomically(Array(text.utf8), to: path, replacing: false, permissions: .ownerReadWrite)
    } catch {
      // Another export has made one in this moment.
      guard error.kind == .alreadyExists, let key = try read() else { throw error }
      return key
    }
    return try ScrubbingKey(bytes)
  }

  private func read() throws -> ScrubbingKey? {
    guard try fileSystem.status(of: path, followingLinks: false) != nil else { return nil }
    let digits = try fileSystem.contents(of: path, limit: 256).filter { $0 > 0x20 }
    guard let bytes = [UInt8](hexadecimal: digits), bytes.count == ScrubbingKey.length else {
      throw SupportBundleErrors.request(
        "read the scrubbing key", path, "it is not 64 hexadecimal digits",
        "Move it away; the next export makes a new one, with other pseudonyms.")
    }
    return try ScrubbingKey(bytes)
  }
}
