internal import PageRecovery
package import Quarantine
internal import StoreFiles
package import SystemPackage

/// The store that a bundle is made of.
package enum ExportSource: Sendable {
  /// A store in its place; it may be in use, so that a private copy of it is what is looked at.
  case store(FilePath)

  /// A store in quarantine, which no process writes to, and the report of its salvage where there is one.
  case quarantined(QuarantinedStore, report: FilePath?)

  /// What it is called for people: the name of its file where the app had it, without the extension.
  package var name: String { originalPath.stem ?? "Store" }

  /// The identifier of the store in quarantine; nil where it is in its place.
  package var quarantineID: String? {
    if case .quarantined(let stored, _) = self { return stored.id }
    return nil
  }

  /// Where the app had it.
  var originalPath: FilePath {
    switch self {
    case .store(let path): path
    case .quarantined(let stored, _): stored.receipt?.originalPath.path ?? stored.files.main
    }
  }

  /// Which recovery kits say something of it.
  func evidence(_ surroundings: Surroundings) throws(SalvageError) -> EvidenceScope {
    switch self {
    case .quarantined(let stored, _): return stored.evidence
    case .store(let path):
      do throws(FileError) {
        let files = try StoreFileSet.locate(path, in: surroundings.fileSystem)
        let folder = QuarantineFolder(beside: files, surroundings: surroundings)
        return EvidenceScope(lineage: try folder.lineage(of: files.main), event: nil)
      } catch {
        throw SalvageError(error)
      }
    }
  }

  /// The receipt; nil for a store in its place, and where there is none.
  var receipt: Receipt? {
    if case .quarantined(let stored, _) = self { return stored.receipt }
    return nil
  }
}
