import ManagedObjectModel
import Platform
import SupportBundle
import SwiftModelSources
import SystemPackage

/// A folder of stores, compiled models and sources, each a version in a model's history.
struct ModelHistory {
  private enum Part {
    case carrier(ModelCarrier)

    case version(FilePath)

    /// A `.momd` or `.xcdatamodeld`; its current version counts.
    case bundle(FilePath)

    /// A folder of Swift sources; their current version counts.
    case sources(FilePath)
  }

  private static let maximumParts = 2000

  let folder: FilePath

  private let parts: [Part]

  /// Whether the folder itself has Swift files, which are read together.
  private let hasSwiftFiles: Bool

  /// Examines a folder; nil if it is a model, Swift sources or no folder.
  init?(_ folder: FilePath) throws {
    self.folder = folder
    let system = FileSystem()
    let endings: Set<String> = ["xcdatamodeld", "xcdatamodel", "momd", "mom", "sql", "bundle"]
    guard !endings.contains(folder.extension?.lowercased() ?? ""),
      try system.status(of: folder)?.kind == .directory, try ModelCarrier(folder) == nil
    else { return nil }
    let names = try system.entries(of: folder).filter { !$0.string.hasPrefix(".") }
      .sorted { precedesByCodeUnit($0.string, $1.string) }
    guard names.count <= ModelHistory.maximumParts else { return nil }
    var parts: [Part] = []
    var folders: [FilePath] = []
    var hasSwiftFiles = false
    for name in names {
      let path = folder.appending(name)
      switch name.extension?.lowercased() {
      case "mom", "xcdatamodel": parts.append(.version(path))
      case "momd", "xcdatamodeld": parts.append(.bundle(path))
      case "swift": hasSwiftFiles = true
      // Plain stores' schemas are alternatives, not versions.
      case "sql": return nil
      default:
        if let carrier = try ModelCarrier(path) {
          parts.append(.carrier(carrier))
        } else if try system.status(of: path, followingLinks: false)?.kind == .directory {
          folders.append(path)
        }
      }
    }
    // Sources alone are a program; look in subfolders only with other signs of a history.
    let tells = parts.contains { part in
      if case .bundle = part { false } else { true }
    }
    guard tells else { return nil }
    for path in folders where try SwiftSources.isSource(path) { parts.append(.sources(path)) }
    self.parts = parts
    self.hasSwiftFiles = hasSwiftFiles
    guard isHistory else { return nil }
  }

  /// Whether the parts form a history: a store does, or a compiled version beside another part.
  ///
  /// Model sources beside Swift files or each other are an app's folder.
  private var isHistory: Bool {
    var hasCompiled = false
    var hasOther = hasSwiftFiles
    for part in parts {
      switch part {
      case .carrier: return true
      case .version(let path) where path.extension?.lowercased() == "mom": hasCompiled = true
      case .version, .bundle, .sources: hasOther = true
      }
    }
    return hasCompiled && hasOther
  }

  /// Loads the history by name; the current version is that of a single kind of sources, else the last.
  ///
  /// - Throws: a part's error; unreadable parts are skipped.
  func load(_ options: SourceOptions) throws -> (bundle: ModelBundle, findings: [SourceFinding]) {
    var history = Gathered()
    for part in parts { try add(part, options, to: &history) }
    if hasSwiftFiles, let models = try sources(folder, options, onlyItsOwnFiles: true) {
      let own = try models.bundle()
      history.findings += models.findings
      for version in own.versions + own.unorderedVersions {
        let name = version.name == "current" ? folder.lastComponent?.string ?? "current" : version.name
        history.add(version, as: name, isSource: version.name == own.current.name)
      }
      for (before, after) in zip(own.versions, own.versions.dropFirst()) {
        history.pairs.append((before: before.name, after: after.name))
      }
    }
    return (try history.bundle(name: folder.stem ?? "History", path: folder), history.findings)
  }

  private func add(_ part: Part, _ options: SourceOptions, to history: inout Gathered) throws {
    switch part {
    case .carrier(let carrier):
      do {
        history.add(try carrier.load().current, as: carrier.versionName, isStore: true)
      } catch let error as ModelError {
        history.unreadable.append(.init(name: carrier.versionName, error: error))
      }
    case .version(let path):
      let name = path.stem ?? path.lastComponent?.string ?? ""
      do throws(ModelError) {
        history.add(try ModelBundle.load(path: path).current, as: name)
      } catch {
        history.unreadable.append(.init(name: name, error: error))
      }
    case .bundle(let path):
      let isSource = path.extension?.lowercased() == "xcdatamodeld"
      let bundle = try ModelBundle.load(path: path)
      history.add(bundle.current, as: path.stem ?? "", isSource: isSource)
    case .sources(let path):
      guard let models = try sources(path, options) else { return }
      history.findings += models.findings
      history.add(try models.bundle().current, as: path.stem ?? "", isSource: true)
    }
  }

  /// Loads Swift sources; nil if they declare no model, as in tests or scripts.
  private func sources(
    _ path: FilePath, _ options: SourceOptions, onlyItsOwnFiles: Bool = false
  ) throws -> SourceModels? {
    do {
      return try options.load(path, onlyItsOwnFiles: onlyItsOwnFiles)
    } catch let error as ModelError where error.kind == .noVersions {
      return nil
    }
  }

  private struct Gathered {
    private struct Found {
      var name: String
      var version: ModelVersion
      var isStore: Bool
      var isSource: Bool
    }

    private var found: [Found] = []
    var unreadable: [ModelBundle.UnreadableVersion] = []
    var findings: [SourceFinding] = []

    var pairs: [(before: String, after: String)] = []

    /// Adds a version; stores of one version count once.
    mutating func add(_ version: ModelVersion, as name: String, isStore: Bool = false, isSource: Bool = false) {
      if isStore, found.contains(where: { $0.isStore && $0.version.versionHashes == version.versionHashes }) { return }
      var unique = name
      var number = 2
      while found.contains(where: { $0.name == unique }) {
        unique = "\(name) (\(number))"
        number += 1
      }
      found.append(Found(name: unique, version: version, isStore: isStore, isSource: isSource))
    }

    func bundle(name: String, path: FilePath) throws -> ModelBundle {
      let sources = found.filter(\.isSource)
      let ordered = ModelBundle.namesInOrder(found.map(\.name))
      let current = sources.count == 1 ? sources[0].name : ordered.last
      let versions = ordered.compactMap { name -> ModelVersion? in
        guard let one = found.first(where: { $0.name == name }) else { return nil }
        return ModelVersion(
          name: name, model: one.version.model, isCurrent: name == current, storedHashes: one.version.storedHashes,
          storedChecksum: one.version.storedChecksum)
      }
      guard
        let bundle = ModelBundle(
          name: name, path: path, versions: versions, isOrdered: false, unreadableVersions: unreadable)
      else {
        throw unreadable.first?.error
          ?? ModelError(.noVersions, path: path, detail: "nothing in the folder has a model that can be read")
      }
      // The present sources follow the released versions.
      var pairs = pairs
      if sources.count == 1, let current {
        for version in versions where version.name != current { pairs.append((before: version.name, after: current)) }
      }
      return bundle.knowing(pairs)
    }
  }
}
