public import RecoveryKit
internal import StoreFiles
public import SystemPackage

/// Where a salvage finds a recovery kit of the store.
public indirect enum KitSource: Sendable {
  /// Nowhere: the salvage does without.
  case none

  /// A file.
  case file(FilePath)

  /// A kit that the caller has, such as one out of a backup.
  case kit(RecoveryKit)

  /// Folders of kits; of all that are the store's the newest is used.
  case folders([KitFolder])

  /// Any of several sources; of all that are the store's the newest is used.
  case any([KitSource])

  /// The kits that can be read, the newest first, and what is to be said of the others.
  func kits(in fileSystem: FileSystem) -> (kits: [RecoveryKit], remarks: [String]) {
    var kits: [RecoveryKit] = []
    var remarks: [String] = []
    switch self {
    case .kit(let kit): kits.append(kit)
    case .any(let sources):
      for found in sources.map({ $0.kits(in: fileSystem) }) {
        kits += found.kits
        remarks += found.remarks
      }
    case .none, .file, .folders: break
    }
    for path in paths(&remarks) {
      do throws(RecoveryKitError) {
        kits.append(try RecoveryKit(contentsOf: path, in: fileSystem))
      } catch {
        remarks.append("the recovery kit \(quoted(path)) was not used: \(error.detail)")
      }
    }
    return (kits.sorted { $0.date > $1.date }, remarks)
  }

  private func paths(_ remarks: inout [String]) -> [FilePath] {
    switch self {
    case .none, .kit, .any: return []
    case .file(let path): return [path]
    case .folders(let folders):
      var paths: [FilePath] = []
      for folder in folders {
        do throws(RecoveryKitError) {
          for kit in try folder.kits() where !paths.contains(kit.path) { paths.append(kit.path) }
        } catch {
          remarks.append("the recovery kits in \(quoted(folder.path)) were not used: \(error.detail)")
        }
      }
      return paths
    }
  }
}
