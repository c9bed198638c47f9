internal import Platform
internal import SystemPackage

/// A folder as a gzip-compressed tar archive.
///
/// The worker that made it has read hostile bytes: only regular files are packed.
enum BundleArchive {
  private static let piece = 1 << 20

  /// The limits on unpacking own archives.
  private static let limits = UnpackingLimits(bytes: 1 << 40, ratio: 2000, entries: 1_000_000)

  /// The regular files below a folder, by relative path.
  private static func files(
    of folder: FilePath, leavingOut names: Set<String>, in fileSystem: FileSystem
  ) throws(FileError) -> [(name: String, path: FilePath)] {
    try fileSystem.descendants(of: folder).files.filter { $0.status.kind == .regular }
      .map { (name: $0.relative.map(\.string).joined(separator: "/"), path: $0.path) }
      .filter { !names.contains($0.name) }.sorted { $0.name < $1.name }
  }

  /// The SHA-256 of regular files, by relative path.
  static func sums(
    of folder: FilePath, leavingOut names: Set<String>, in fileSystem: FileSystem
  ) throws -> [String: String] {
    try files(of: folder, leavingOut: names, in: fileSystem).reduce(into: [:]) { sums, file in
      sums[file.name] = try FileDigest(of: fileSystem.open(file.path)).hexadecimal
    }
  }

  /// Packs a folder's regular files into a new file.
  ///
  /// - Parameters:
  ///   - names: the excluded files.
  ///   - before: excluded while they have this SHA-256.
  static func pack(
    _ folder: FilePath, leavingOut names: Set<String>, unchangedSince before: [String: String], to path: FilePath,
    in fileSystem: FileSystem
  ) throws -> (sha256: String, bytes: Int64) {
    var packed = Packed(try fileSystem.create(path, permissions: .ownerReadWrite, truncating: true))
    var tar = TarWriter(secondsSince1970: 0)
    // Speed matters more than size: archives are read once or twice.
    var gzip = try GzipWriter(level: 1)
    for (name, path) in try files(of: folder, leavingOut: names, in: fileSystem) {
      let file = try fileSystem.open(path)
      if let known = before[name], try FileDigest(of: file).hexadecimal == known { continue }
      try packed.write(gzip.write(tar.begin(name, size: file.count)))
      var position: Int64 = 0
      while position < file.count {
        let bytes = try file.bytes(at: position, length: Int(min(Int64(piece), file.count - position)))
        guard !bytes.isEmpty else { break }
        position += Int64(bytes.count)
        try packed.write(gzip.write(tar.write(bytes)))
      }
      guard position == file.count else {
        throw FileError(.changed, operation: "pack the files", path: path, detail: "it became shorter meanwhile")
      }
    }
    try packed.write(gzip.write(tar.finish()))
    try packed.write(gzip.finish())
    let (sum, bytes) = (packed.digest.hexadecimal, packed.bytes)
    try packed.commit()
    return (sum, bytes)
  }

  private struct Packed: ~Copyable {
    private(set) var digest = RunningDigest()
    private(set) var bytes: Int64 = 0
    private let file: WritableFile

    init(_ file: consuming WritableFile) { self.file = file }

    mutating func write(_ bytes: [UInt8]) throws(FileError) {
      digest.add(bytes)
      self.bytes += Int64(bytes.count)
      try file.write(bytes)
    }

    consuming func commit() throws(FileError) { try file.commit() }
  }

  /// Unpacks an archive, replacing existing files.
  static func unpack(_ path: FilePath, into folder: FilePath, in fileSystem: FileSystem) throws {
    let file = try fileSystem.open(path)
    var gzip = try GzipReader(limits: limits)
    var unpacking = Unpacking(folder, fileSystem)
    var position: Int64 = 0
    while position < file.count {
      let bytes = try file.bytes(at: position, length: piece)
      guard !bytes.isEmpty else { break }
      position += Int64(bytes.count)
      try gzip.read(bytes) { try unpacking.add($0) }
    }
    try gzip.finish()
    try unpacking.finish()
  }

  private struct Unpacking: ~Copyable {
    private var tar = TarReader(limits: BundleArchive.limits)
    private let folder: FilePath
    private let fileSystem: FileSystem
    private var current: WritableFile?

    init(_ folder: FilePath, _ fileSystem: FileSystem) {
      self.folder = folder
      self.fileSystem = fileSystem
    }

    mutating func add(_ bytes: ArraySlice<UInt8>) throws {
      var events: [TarReader.Event] = []
      try tar.read(bytes) { events.append($0) }
      for event in events { try take(event) }
    }

    consuming func finish() throws(FileError) { try tar.finish() }

    private mutating func take(_ event: TarReader.Event) throws {
      switch event {
      case .entry(let entry):
        guard !entry.isFolder else { return }
        var path = folder
        for part in entry.components.dropLast() { path.append(part) }
        try fileSystem.makeDirectory(path, permissions: .ownerReadWriteExecute)
        path.append(entry.components.last ?? "")
        // Replace an older file of that name; never write into it.
        try fileSystem.unlink(path)
        current = try fileSystem.create(path, permissions: .ownerReadWrite)
      case .content(let bytes): try current?.write(bytes)
      case .end: current = nil
      }
    }
  }
}
