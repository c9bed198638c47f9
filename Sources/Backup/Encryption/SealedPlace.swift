import Foundation
import Platform
import SystemPackage

/// A place as seen by a key holder, with names, sizes and content before encryption.
///
/// Plain and unopened backups appear unchanged.
struct SealedPlace: BackupPlace {
  let base: any BackupPlace

  let keys: BackupKeys

  var location: String { base.location }
  var owner: PlaceOwner? { base.owner }
  var readsAtOnce: Int { base.readsAtOnce }

  private static let operation = "open the backup"

  /// Enough for a prologue of more than twenty keys.
  private static let beginningLength = 4096

  static let manifestSuffix = BackupManifest.File.Role.manifest.suffix + BackupManifest.Encryption.fileEnding

  // MARK: Names

  /// Returns an object's encrypted name, unless it is never encrypted.
  static func sealedName(of name: String) -> String? {
    guard let id = BackupCatalog.identifier(of: name) else { return nil }
    let rest = name.dropFirst(id.description.utf8.count)
    if rest == BackupManifest.suffix { return "\(id)\(manifestSuffix)" }
    guard BackupManifest.File.Role.suffixes.contains(String(rest)),
      !rest.hasSuffix(BackupManifest.Encryption.fileEnding)
    else { return nil }
    return name + BackupManifest.Encryption.fileEnding
  }

  /// Parses an encrypted file's prologue, if the file exists.
  ///
  /// - Parameter usesLabel: whether to try the outer manifest's copy too.
  private func file(_ name: String, _ section: BackupSection, usesLabel: Bool = true) throws -> SealedFile? {
    if let known = keys.files.known(name, section) { return known }
    guard var bytes = try base.readIfThere(name, in: section, at: 0, length: Self.beginningLength) else { return nil }
    var file = try parsed(&bytes, name, section)
    if file?.content == nil, usesLabel, let copy = try beginning(of: name, section) {
      var copy = copy
      if let other = try parsed(&copy, nil, section), other.content != nil || file == nil { file = other }
    }
    if let file { keys.files.add(file, name, section) }
    return file
  }

  private func parsed(_ bytes: inout [UInt8], _ name: String?, _ section: BackupSection) throws -> SealedFile? {
    for isFirst in [true, false] {
      do throws(FileError) {
        guard let length = try AgeContent.prologueLength(beginning: bytes) else {
          guard isFirst, let name else { return nil }
          // On an error the second pass finds no prologue.
          bytes = (try? base.read(name, in: section, at: 0, length: AgeContent.longestPrologue)) ?? []
          continue
        }
        return SealedFile(prologueLength: length, content: try content(bytes))
      } catch { return nil }
    }
    return nil
  }

  private func content(_ bytes: [UInt8]) throws(FileError) -> AgeContent? {
    do throws(FileError) { return try AgeContent(beginning: bytes, with: keys.identities) } catch {
      guard [.ageNoIdentity, .ageHeaderAltered, .ageHeader].contains(error.kind) else { throw error }
      return nil
    }
  }

  private func beginning(of name: String, _ section: BackupSection) throws -> [UInt8]? {
    guard let id = BackupCatalog.identifier(of: name), let label = try label(id, section) else { return nil }
    return label.files.first { $0.name == name }?.beginning.flatMap { Data(base64Encoded: $0) }.map { [UInt8]($0) }
  }

  /// Reads the outer, plain manifest of an encrypted backup, if valid.
  private func label(_ id: BackupIdentifier, _ section: BackupSection) throws -> BackupManifest? {
    let name = "\(id)\(BackupManifest.suffix)"
    guard let text = try base.readIfThere(name, in: section, at: 0, length: BackupManifest.limit),
      let manifest = try? BackupManifest(json: text, of: id), manifest.isLocked
    else { return nil }
    return manifest
  }

  /// Returns the encrypted file of an object, if it is encrypted.
  ///
  /// - Throws: `backup-encrypted` if no key opens a file other than the manifest.
  private func opened(
    _ name: String, _ section: BackupSection
  ) throws -> (name: String, prologue: Int, content: AgeContent)? {
    guard let sealed = Self.sealedName(of: name), let file = try file(sealed, section) else { return nil }
    if let content = file.content { return (sealed, file.prologueLength, content) }
    guard !sealed.hasSuffix(Self.manifestSuffix), let id = BackupCatalog.identifier(of: name) else { return nil }
    throw BackupError.locked(id, Self.operation)
  }

  // MARK: The protocol

  /// Returns the backups with a manifest, or any file, that a key opens.
  private func openBackups(_ objects: [BackupObject], _ section: BackupSection) throws -> Set<BackupIdentifier> {
    var sealed: [BackupIdentifier: [String]] = [:]
    for object in objects where object.name.hasSuffix(BackupManifest.Encryption.fileEnding) {
      if let id = BackupCatalog.identifier(of: object.name) { sealed[id, default: []].append(object.name) }
    }
    let groups = sealed.ordered { $0.key < $1.key }
    let open = try atOnce(groups) { id, names in
      let manifest = "\(id)\(Self.manifestSuffix)"
      let manifestFirst = (names.contains(manifest) ? [manifest] : []) + names.filter { $0 != manifest }.sorted()
      return try manifestFirst.contains { try file($0, section)?.content != nil }
    }
    return Set(zip(groups, open).filter(\.1).map(\.0.key))
  }

  func list(_ section: BackupSection) throws -> [BackupObject] {
    let objects = try base.list(section)
    let open = try openBackups(objects, section)
    if open.isEmpty { return objects }
    var result: [BackupObject] = []
    for var object in objects {
      if let id = BackupCatalog.identifier(of: object.name), open.contains(id) {
        // The encrypted manifest replaces the outer one.
        if object.name == "\(id)\(BackupManifest.suffix)" { continue }
        if object.name.hasSuffix(BackupManifest.Encryption.fileEnding) {
          let known = try file(object.name, section)
          // It is later read from its copies.
          if object.name.hasSuffix(Self.manifestSuffix), known?.content == nil { continue }
          object.bytes = AgeContent.length(sealed: object.bytes, prologue: known?.prologueLength ?? 0)
          object.name =
            object.name.hasSuffix(Self.manifestSuffix)
            ? "\(id)\(BackupManifest.suffix)" : String(object.name.dropLast(BackupManifest.Encryption.fileEnding.count))
        }
      }
      result.append(object)
    }
    return result
  }

  func contains(_ name: String, in section: BackupSection) throws -> Bool {
    if try base.contains(name, in: section) { return true }
    guard let sealed = Self.sealedName(of: name), try base.contains(sealed, in: section) else { return false }
    return try file(sealed, section)?.content != nil
  }

  func read(_ name: String, in section: BackupSection, at offset: Int64, length: Int) throws -> [UInt8] {
    try read(name, in: section, at: offset, length: length, isProven: true)
  }

  func readUnproven(_ name: String, in section: BackupSection, at offset: Int64, length: Int) throws -> [UInt8] {
    try read(name, in: section, at: offset, length: length, isProven: false)
  }

  private func read(
    _ name: String, in section: BackupSection, at offset: Int64, length: Int, isProven: Bool
  ) throws -> [UInt8] {
    guard let (sealed, prologue, content) = try opened(name, section) else {
      return try base.read(name, in: section, at: offset, length: length)
    }
    guard offset >= 0, length > 0 else { return [] }
    let (chunk, whole) = (Int64(AgeContent.chunkLength), AgeContent.sealedChunkLength)
    let first = offset / chunk
    let count = Int((offset - first * chunk + Int64(length) + chunk - 1) / chunk)
    // One more byte shows whether the last chunk is final.
    let bytes = try base.read(
      sealed, in: section, at: Int64(prologue) + first * Int64(whole), length: count * whole + 1)
    var result: [UInt8] = []
    result.reserveCapacity(min(count * Int(chunk), bytes.count))
    for index in 0..<count where index * whole < bytes.count {
      let part = bytes[(index * whole)..<min((index + 1) * whole, bytes.count)]
      let isLast = (index + 1) * whole >= bytes.count
      let number = UInt64(first) + UInt64(index)
      // A file truncated between chunks lacks a final one.
      let known =
        content.open(chunk: number, part, isLast: isLast)
        ?? (isLast ? content.open(chunk: number, part, isLast: false) : nil)
      // Zeros for altered chunks keep later data in place.
      result +=
        known
        ?? (isProven
          ? [UInt8](repeating: 0, count: max(0, part.count - (whole - Int(chunk))))
          : content.openUnproven(chunk: number, part, isLast: isLast))
    }
    let start = Int(offset - first * chunk)
    guard start < result.count else { return [] }
    return Array(result[start..<min(result.count, start + length)])
  }

  func begin(_ name: String) throws -> any BackupUpload {
    guard let writing = keys.writing, let sealed = Self.sealedName(of: name) else { return try base.begin(name) }
    var recipients = writing.recipients
    let isForDelta = sealed.hasSuffix(Self.manifestSuffix) || name.hasSuffix(BackupManifest.File.Role.pageHashes.suffix)
    if isForDelta, let delta = writing.delta { recipients.append(delta) }
    let upload = try SealedUpload(name, try base.begin(sealed), to: recipients, keys.files)
    guard name.hasSuffix(BackupManifest.suffix), let id = BackupCatalog.identifier(of: name) else { return upload }
    return try SealedManifestUpload(id, in: self, upload)
  }

  func replace(_ name: String, with bytes: [UInt8], in section: BackupSection) throws {
    guard let id = BackupCatalog.identifier(of: name), try isSealed(id, in: section) else {
      return try base.replace(name, with: bytes, in: section)
    }
    if name.hasSuffix(BackupProof.suffix) { return try replaceProof(name, of: id, with: bytes, in: section) }
    guard Self.sealedName(of: name) == nil else {
      throw BackupError(
        .request, operation: "write to the backup", detail: "\(printable(name)) is encrypted, and is never rewritten",
        hint: "Take a new backup.")
    }
    try base.replace(name, with: bytes, in: section)
  }

  func move(_ name: String, from: BackupSection, to: BackupSection) throws {
    for own in try names(of: name, from) { try base.move(own, from: from, to: to) }
  }

  func delete(_ name: String, in section: BackupSection) throws {
    for own in try names(of: name, section) { try base.delete(own, in: section) }
  }

  /// Returns the stored names of an object, that of the listing file first.
  private func names(of name: String, _ section: BackupSection) throws -> [String] {
    guard let sealed = Self.sealedName(of: name), try file(sealed, section, usesLabel: false) != nil else {
      return [name]
    }
    guard name.hasSuffix(BackupManifest.suffix) else { return [sealed] }
    return try base.list(section).contains { $0.name == name } ? [name, sealed] : [sealed]
  }

  func claim(for store: FilePath, isEncrypted: Bool, in fileSystem: FileSystem) throws {
    try base.claim(for: store, isEncrypted: isEncrypted, in: fileSystem)
  }

  func unfinished() throws -> [String] { try base.unfinished() }
  func removeUnfinished() throws { try base.removeUnfinished() }
  func lock() throws -> any BackupPlaceLock { try base.lock() }

  func isSealed(_ id: BackupIdentifier, in section: BackupSection) throws -> Bool { try base.isSealed(id, in: section) }

  func label(of id: BackupIdentifier) throws -> (place: any BackupPlace, manifest: BackupManifest)? {
    try label(id, .kept).map { (base, $0) }
  }

  // MARK: Proofs

  /// Writes a proof without store content, with the digest of the outer manifest.
  private func replaceProof(
    _ name: String, of id: BackupIdentifier, with bytes: [UInt8], in section: BackupSection
  ) throws {
    guard var proof = BackupProof(json: bytes, of: id) else { return }
    proof.problems = proof.problems.map(\.withoutContent)
    proof.warnings = proof.warnings?.map(\.withoutContent)
    if proof.manifest != nil, let label = try label(id, section) { proof.manifest = label.digest }
    try base.replace(name, with: try proof.json(), in: section)
  }

  /// Makes the outer manifest, with the facts public without a key.
  ///
  /// It has the files and the facts for listing, verification and pruning, but no names, counts or paths of the store.
  func label(of manifest: BackupManifest) throws -> BackupManifest {
    let id = manifest.id
    var files: [BackupManifest.File] = []
    func add(_ role: BackupManifest.File.Role, _ compression: BackupCompression?, _ name: String) throws {
      guard let written = keys.files.written(name) else {
        throw BackupError(
          .packing, operation: "write the manifest of backup \(id)", detail: "a file of it was not encrypted")
      }
      var file = BackupManifest.File(role: role, name: name, bytes: written.bytes, sha256: written.sha256)
      file.compression = compression
      file.beginning = Data(written.beginning).base64EncodedString()
      files.append(file)
    }
    for file in manifest.files {
      try add(file.role, file.compression, file.name + BackupManifest.Encryption.fileEnding)
    }
    try add(.manifest, nil, "\(id)\(Self.manifestSuffix)")
    var label = BackupManifest(
      id: id, kind: manifest.kind, reason: manifest.reason, files: files.ordered { $0.name < $1.name },
      check: .init(isSound: manifest.check.isSound))
    label.encryption = .init()
    label.version = label.neededVersion
    label.tags = manifest.tags
    label.parent = manifest.parent
    label.depth = manifest.depth
    label.lineage = manifest.lineage
    label.check.depth = manifest.check.depth
    // Pruning needs the backups, but not the entities.
    label.falls = manifest.falls.map { falls in
      Set(falls.map(\.backup)).sorted().map { .init(name: "", before: 0, after: 0, backup: $0) }
    }
    return label
  }
}

extension BackupProof.Problem {
  /// The problem without words about store content.
  fileprivate var withoutContent: BackupProof.Problem {
    guard file == nil else { return self }
    var problem = self
    problem.words = "what is wrong is told to the holder of the key"
    return problem
  }
}
