internal import Platform
public import SystemPackage

/// The place of a store's recovery kit.
public indirect enum KitSource: Sendable {
  /// No kit.
  case none

  case file(FilePath)

  /// A kit in memory, such as one from a backup.
  case kit(RecoveryKit)

  /// Folders; the newest of the store's kits is used.
  case folders([KitFolder])

  /// Several sources; the newest of the store's kits is used.
  case any([KitSource])

  /// Reads all kits, newest first, with remarks on unreadable ones.
  ///
  /// - Throws: environmental errors, as salvaging without an existing kit would lose records.
  func kits(in fileSystem: FileSystem) throws -> (kits: [RecoveryKit], remarks: [String]) {
    var kits: [RecoveryKit] = []
    var remarks: [String] = []
    switch self {
    case .kit(let kit): kits.append(kit)
    case .any(let sources):
      for source in sources {
        let found = try source.kits(in: fileSystem)
        kits += found.kits
        remarks += found.remarks
      }
    case .none, .file, .folders: break
    }
    for path in try paths(&remarks) {
      do {
        kits.append(try RecoveryKit(contentsOf: path, in: fileSystem))
      } catch {
        let error = RecoveryKitError(any: error)
        try Self.requireReadable(error)
        remarks.append("the recovery kit \(quoted(path)) was not used: \(error.detail)")
      }
    }
    return (kits.ordered { $0.date > $1.date }, remarks)
  }

  /// Throws environmental errors; other unreadable kits only get a remark.
  private static func requireReadable(_ error: RecoveryKitError) throws {
    guard let fileError = error.fileError, fileError.isEnvironmental else { return }
    switch fileError.kind {
    case .isDirectory, .notRegularFile, .danglingLink: return
    case .notFound, .alreadyExists, .permissionDenied, .readOnlyFileSystem, .noSpace, .inputOutput, .locked, .inUse,
      .notDownloaded, .crossDevice, .tooLarge, .nameTooLong, .changed, .outOfMemory, .tooManyOpenFiles, .noLocks,
      .cannotOpen, .verificationFailed, .journalUnreadable, .placeTaken, .encodingFailed, .other:
      throw fileError
    }
  }

  private func paths(_ remarks: inout [String]) throws -> [FilePath] {
    switch self {
    case .none, .kit, .any: return []
    case .file(let path): return [path]
    case .folders(let folders):
      var paths: [FilePath] = []
      for folder in folders {
        do {
          for kit in try folder.kits() where !paths.contains(kit.path) { paths.append(kit.path) }
        } catch {
          let error = RecoveryKitError(any: error)
          try Self.requireReadable(error)
          remarks.append("the recovery kits in \(quoted(folder.path)) were not used: \(error.detail)")
        }
      }
      return paths
    }
  }
}
