package import Platform
import SystemPackage

/// Notes which files of private folders have a name while they are written.
package final class NamedWrites: Sendable {
  private let found = Mutex<Set<String>>([])

  package init() {}

  /// The names of the files.
  package var names: Set<String> { found.withLock { $0 } }

  /// The file system to pass in.
  package var fileSystem: FileSystem {
    FileSystem { operation throws(Errno) in self.observe(operation) }
  }

  private func observe(_ operation: FileOperation) {
    // The content of a private folder, beside which lie notes of what is unfinished.
    guard operation.kind == .write, operation.path.components.contains("Content"),
      let name = operation.path.lastComponent?.string
    else { return }
    let status = try? FileSystem().status(of: operation.path)
    guard status != nil else { return }
    _ = found.withLock { $0.insert(name) }
  }
}
