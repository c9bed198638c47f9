import Foundation
import StoreFiles
import SystemPackage

extension SealedPlace {
  /// The manifest outside of an encrypted backup: what may be known without a key.
  ///
  /// It has the files as they lie there, and what listing, verifying digests and pruning need; names, counts and paths of the
  /// store are not in it.
  func label(of manifest: BackupManifest) throws(BackupError) -> BackupManifest {
    let id = manifest.id
    var files: [BackupManifest.File] = []
    func add(_ role: BackupManifest.File.Role, _ compression: BackupCompression?, _ name: String) throws(BackupError) {
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
      id: id, kind: manifest.kind, reason: manifest.reason, store: .init(path: PathText(""), kind: "unknown"),
      files: files.ordered { $0.name < $1.name }, check: .init(isSound: manifest.check.isSound),
      versions: .init(library: "", operatingSystem: ""))
    label.encryption = .init()
    label.version = label.neededVersion
    label.tags = manifest.tags
    label.parent = manifest.parent
    label.depth = manifest.depth
    label.lineage = manifest.lineage
    label.check.depth = manifest.check.depth
    // Pruning has to know what a fall of records keeps, and not whose records they were.
    label.falls = manifest.falls.map { falls in
      Set(falls.map(\.backup)).sorted().map { .init(name: "", before: 0, after: 0, backup: $0) }
    }
    return label
  }
}
