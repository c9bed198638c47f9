internal import Archives
internal import StoreFiles
internal import SystemPackage

/// The files of a bag as they were unpacked, not checked yet.
struct UnpackedBag {
  let folder: FilePath
  let fileSystem: FileSystem
  private var files: [String: (bytes: Int64, sha256: String)] = [:]

  private static let operation = "check the bundle"
  private static let required = ["bagit.txt", "bag-info.txt", "manifest-sha256.txt", "tagmanifest-sha256.txt"]

  init(folder: FilePath, fileSystem: FileSystem) {
    self.folder = folder
    self.fileSystem = fileSystem
  }

  mutating func add(_ name: String, bytes: Int64, sha256: String) { files[name] = (bytes, sha256) }

  /// The bundle, once every file is listed and each is what the list says.
  func checked(_ path: FilePath, sha256: String, bytes: Int64, isEncrypted: Bool) throws -> ReceivedBundle {
    for name in Self.required where files[name] == nil { throw damaged(path, "it has no \(name)") }
    guard let declaration = BagTags(try content("bagit.txt")), declaration["BagIt-Version"] == "1.0" else {
      throw damaged(path, "bagit.txt does not say that it is a bag of version 1.0")
    }
    guard let info = BagTags(try content("bag-info.txt")), info["Lazaret-Bundle-Version"] == "1",
      let level = info["Lazaret-Level"].flatMap(BundleLevel.init(rawValue:))
    else {
      throw damaged(path, "bag-info.txt does not say what is in it, or a later version of this software wrote it")
    }
    guard let manifest = BagManifest(try content("manifest-sha256.txt")),
      let tagManifest = BagManifest(try content("tagmanifest-sha256.txt"))
    else { throw damaged(path, "a list of its files is damaged") }
    var listed = Set<String>()
    for (name, sum) in manifest.sums {
      guard name.hasPrefix("data/") else { throw damaged(path, "its list names a file that is not below data/") }
      guard let file = files[name] else { throw damaged(path, "a file of its list is missing") }
      guard file.sha256 == sum else { throw damaged(path, "a file is not the one that the list says") }
      listed.insert(name)
    }
    for (name, sum) in tagManifest.sums {
      guard !name.hasPrefix("data/"), files[name]?.sha256 == sum else {
        throw damaged(path, "a file that describes the bundle is missing or was altered")
      }
      listed.insert(name)
    }
    listed.insert("tagmanifest-sha256.txt")
    guard Self.required.allSatisfy(listed.contains), files.keys.allSatisfy(listed.contains) else {
      throw damaged(path, "it holds a file that is on no list")
    }
    let content = files.filter { $0.key.hasPrefix("data/") }
    let size = content.values.reduce(0) { $0 + $1.bytes }
    if let oxum = info["Payload-Oxum"], oxum != "\(size).\(content.count)" {
      throw damaged(path, "it does not hold as many bytes and files as it says")
    }
    return ReceivedBundle(
      folder: folder, level: level, app: info["Lazaret-App"], store: info["Lazaret-Store"] ?? "store",
      date: info["Lazaret-Date"].flatMap(Timestamp.init), identifier: info["External-Identifier"] ?? "",
      isEncrypted: isEncrypted, sha256: sha256, bytes: bytes,
      files: content.map { ReceivedBundle.File(name: String($0.key.dropFirst(5)), bytes: $0.value.bytes) }
        .ordered { $0.name < $1.name })
  }

  private func content(_ name: String) throws -> [UInt8] {
    guard let file = files[name], file.bytes <= BagManifest.lengthLimit else {
      throw ArchiveError(.tooLarge, "a file that describes the bundle is too large")
    }
    return try fileSystem.contents(of: folder.appending(name), limit: BagManifest.lengthLimit)
  }

  private func damaged(_ path: FilePath, _ detail: String) -> SupportBundleError {
    SupportBundleError(.bundleDamaged, operation: Self.operation, path: path, detail: detail)
  }
}
