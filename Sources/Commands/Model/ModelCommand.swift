import ArgumentParser
import ManagedObjectModel
import Migration
import Platform
import SwiftModelSources
import SystemPackage

struct ModelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "model", abstract: "Shows models, compares their versions and checks them.",
    subcommands: [
      ModelShowCommand.self, ModelHashesCommand.self, ModelDiffCommand.self, ModelLintCommand.self,
      ModelVerifyCommand.self, ModelSealCommand.self, ModelFreezeCommand.self, ModelExportCommand.self,
    ])
}

struct ModelOptions: ParsableArguments {
  @Argument(
    help:
      "The model: .xcdatamodeld, .xcdatamodel, .momd, .mom, Swift sources (a file or a folder), a store, backup or bundle that carries its model, or a folder of these, a version each."
  )
  var model: PathArgument

  @OptionGroup var versionOrder: VersionOrderOptions

  func load(json: Bool) throws -> ModelBundle { try loaded(json: json).bundle }

  /// Loads the model; Swift sources with incomplete versions and open questions.
  func loadedWhole(json: Bool) throws -> (model: LoadedModel, isSource: Bool) {
    let isSource = try SwiftSources.isSource(model.path)
    return (try isSource ? versionOrder.loadWhole(model.path) : LoadedModel(bundle: load(json: json)), isSource)
  }

  /// Loads the model with its Swift sources, to name lines.
  func loaded(json: Bool) throws -> LoadedModel { try versionOrder.loaded(model.path, json: json) }
}

/// `lazaret model seal`: binds a mapping file to the present versions.
struct ModelSealCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "seal", abstract: "Writes the version hashes of its two versions into a mapping file.",
    usage: "lazaret model seal <model> <mapping> [<options>]",
    discussion: "A mapping file with hashes is refused as stale once one of the versions has been changed.",
    examples: "lazaret model seal App.xcdatamodeld Split.json")

  @OptionGroup var options: ModelOptions

  @Argument(help: "The mapping file (.json); it is replaced, whole or not at all.")
  var mapping: PathArgument

  @OptionGroup var output: OutputOptions

  func perform() throws {
    let bundle = try options.load(json: output.json)
    let sealed = try MappingFile(contentsOf: mapping.path).sealed(in: bundle)
    // Reject a file that does not fit the versions.
    let model = try sealed.mappingModel(in: bundle)
    let permissions = try FileSystem().status(of: mapping.path)?.permissions ?? .ownerReadWrite
    try FileSystem().writeAtomically(
      Array(sealed.text.utf8), to: mapping.path, replacing: true, permissions: permissions)
    let (source, destination) = (model.sourceChecksum, model.destinationChecksum)
    try output.print(
      ["mapping": PathText(mapping.path), "source": source, "destination": destination] as JSON.Object,
      "\(printable(mapping.path.string)): sealed\n  source       \(source)\n  destination  \(destination)\n")
  }
}

extension MappingModel {
  fileprivate var sourceChecksum: String { ManagedObjectModel.versionChecksum(of: sourceHashes) }
  fileprivate var destinationChecksum: String { ManagedObjectModel.versionChecksum(of: destinationHashes) }
}

struct ModelHashesCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "hashes", abstract: "Prints the version hash of each entity and the checksum of each version.",
    usage: "lazaret model hashes <model> [--types <names>] [--json] [<options>]",
    discussion: """
      They are the hashes that Core Data writes into stores (NSStoreModelVersionHashes), and the checksum it names a \
      version by (NSStoreModelVersionChecksumKey).

      In Swift sources, an entity that only a compiler could tell has no hash. Its file and line are named, and the exit \
      code is 2, as it is where a version cannot be read.
      """, examples: "lazaret model hashes App.xcdatamodeld")

  @OptionGroup var options: ModelOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let (loaded, isSource) = try options.loadedWhole(json: output.json)
    let bundle = loaded.bundle
    if isSource, !output.json { try loaded.tell(json: false) }
    try output.print(JSON.Object(bundle.hashesPayload(), ["sources": loaded.sources]), Self.text(bundle))
    guard loaded.isComplete, bundle.unreadableVersions.isEmpty else { throw ExitStatus.doubtful }
  }

  private static func text(_ bundle: ModelBundle) -> String {
    var text = ""
    for version in bundle.versions {
      text += "\(printable(version.name))\(version.name == bundle.current.name ? " (current)" : "")\n"
      if version.isComplete { text += "  checksum \(version.checksum)\n" }
      var table = TextTable(["entity", "hash"])
      for name in version.model.entities.keys.inCodeUnitOrder() {
        table.append([printable(name), version.versionHashes[name]?.hex ?? "cannot be told"])
      }
      text += table.text()
      for name in version.mismatchedEntityNames {
        text +=
          "  warning: the bundle has another hash stored for \(printable(name)): its files are of different versions\n"
      }
    }
    return text
  }
}

struct ModelShowCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "show", abstract: "Prints a model's entities, attributes, relationships, indexes and constraints.",
    usage: "lazaret model show <model> [--version-name <name>] [<options>]",
    discussion: """
      Shows the current version unless told otherwise. Versions that cannot be read are named at the end.

      What Swift sources leave open is named with file and line. Where something is missing for it, the exit code is 2.
      """, examples: "lazaret model show App.xcdatamodeld")

  @OptionGroup var options: ModelOptions

  @Option(help: .text("The version to show.", "name")) var versionName: String?

  @Flag(help: "Show every version.") var all = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if all, versionName != nil { throw ValidationError("Give --all or --version-name, not both.") }
  }

  func perform() throws {
    let (loaded, isSource) = try options.loadedWhole(json: output.json)
    let bundle = loaded.bundle
    let versions: [ModelVersion]
    if all {
      versions = bundle.versions
    } else if let versionName {
      guard let version = bundle.version(named: versionName) else {
        throw bundle.lacksVersion(versionName, at: options.model.path)
      }
      versions = [version]
    } else {
      versions = [bundle.current]
    }
    try output.print(
      JSON.Object(bundle.payload(versions), ["sources": loaded.sources]),
      ModelListing(bundle, versions: versions, width: min(100, Terminal.standardOutput.width ?? 80)).text)
    if isSource, !output.json { try loaded.tell(json: false) }
    guard versions.allSatisfy(\.isComplete) else { throw ExitStatus.doubtful }
  }
}

struct ModelDiffCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "diff", abstract: "Prints the mapping that is inferred between two versions, and what it would lose.",
    usage: "lazaret model diff <model> [--from <version>] [--to <version>] [<options>]",
    discussion: """
      Compares the version before the current one with the current one unless told otherwise. No store is needed.
      """, examples: "lazaret model diff App.xcdatamodeld --from V1 --to V2",
    exitCodes: ExitStatus.codes(
      done: "nothing would be lost, and nothing is refused",
      doubtful: "something would be lost, or is refused; the output says what",
      unavailable: "the model is out of reach"))

  @OptionGroup var options: ModelOptions

  @Option(help: .text("The version to start from; the one before the other if not given.", "version"))
  var from: String?

  @Option(help: .text("The version to lead to; the current one if not given.", "version"))
  var to: String?

  @OptionGroup var output: OutputOptions

  func perform() throws {
    let bundle = try options.load(json: output.json)
    let destination = try to.map { try version($0, of: bundle) } ?? bundle.current
    let source = try from.map { try version($0, of: bundle) } ?? before(destination, in: bundle)
    let inference = MappingInference(from: source.model, to: destination.model)
    try output.print(
      inference.payload(from: source.name, to: destination.name),
      MappingListing(inference, from: source.name, to: destination.name).text)
    guard inference.refusals.isEmpty, inference.mapping.losses.isEmpty else { throw ExitStatus.doubtful }
  }

  /// Returns the preceding version; the same for a model with one version.
  ///
  /// - Throws: `unknown-version` for the first of several, so that no version is silently compared with itself.
  private func before(_ version: ModelVersion, in bundle: ModelBundle) throws -> ModelVersion {
    let place = bundle.versions.firstIndex { $0.name == version.name }
    if let place, place > 0 { return bundle.versions[place - 1] }
    let names = (bundle.versions + bundle.unorderedVersions).map { printable($0.name) }
    guard names.count > 1 else { return version }
    throw MigrationError(
      .unknownVersion, operation: "compare the versions", path: options.model.path,
      detail: """
        no version is known to come before "\(printable(version.name))"; the model has \(names.joined(separator: ", "))
        """, hint: "Name the version to start from with --from.")
  }

  private func version(_ name: String, of bundle: ModelBundle) throws -> ModelVersion {
    if let version = bundle.version(named: name) { return version }
    if let unreadable = bundle.unreadableVersions.first(where: { $0.name == name }) { throw unreadable.error }
    throw MigrationError(
      .unknownVersion, operation: "compare the versions", path: options.model.path,
      detail: """
        the model has no version "\(printable(name))"; it has \
        \(bundle.versions.map { printable($0.name) }.joined(separator: ", "))
        """,
      hint: Likeness.hint(
        "Name a version that the model has.", for: [name], among: bundle.versions.map { printable($0.name) }))
  }
}

struct ModelExportCommand: Verb {
  enum Format: String, CaseIterable, ExpressibleByArgument { case mom, xcdatamodel }

  static let configuration = CommandConfiguration(
    verb: "export", abstract: "Writes a version of a model compiled or as source, with the same hashes.",
    usage: "lazaret model export <model> --output <file> [--version-name <name>] [<options>]",
    discussion: """
      The version is that of a store, a backup or a bundle, by the model that it carries, or one of a model of any kind. \
      What is written is read back first: its hashes are the version's. What source has no word for, such as a default of \
      bytes, is named.
      """,
    examples: "lazaret model export App.store --output V1.mom\n"
      + "  lazaret model export App.store --output V1.xcdatamodel")

  @OptionGroup var options: ModelOptions

  @Option(name: .output, help: .text("The new file or folder.", "file")) var out: PathArgument

  @Option(help: .text("The version; the current one if not given.", "name"))
  var versionName: String?

  @Option(help: "What it is written as; if not given, what the ending says, else mom.")
  var format: Format?

  @OptionGroup var output: OutputOptions

  func validate() throws { try out.requirePlace() }

  func perform() throws {
    let bundle = try options.load(json: output.json)
    let version = try versionName.map { try bundle.readableVersion($0, at: options.model.path) } ?? bundle.current
    guard try FileSystem().status(of: out.path, followingLinks: false) == nil else {
      throw FileError(.alreadyExists, operation: "export the model", path: out.path)
    }
    let format = format ?? (out.path.extension?.lowercased() == "xcdatamodel" ? .xcdatamodel : .mom)
    let omissions = try write(version.model, as: format)
    // What source cannot express does not affect hashes.
    var text = "\(printable(out.path.string)): \(printable(version.name)) as \(format.rawValue), "
    text += "checksum \(version.checksum)\n"
    for omission in omissions { text += "  left out: \(omission)\n" }
    try output.print(
      [
        "version": version.name, "checksum": version.checksum, "entities": version.versionHashes.mapValues(\.hex),
        "format": format.rawValue, "file": PathText(out.path), "leftOut": omissions,
      ] as JSON.Object, text)
  }

  /// Writes the model atomically and returns what was omitted, in words.
  private func write(_ model: ManagedObjectModel, as format: Format) throws -> [String] {
    let system = FileSystem()
    // A model holds no records.
    switch format {
    case .mom:
      try system.writeAtomically(
        try model.compiled(), to: out.path, replacing: false, permissions: .init(rawValue: 0o644))
      return []
    case .xcdatamodel:
      let source = try model.source()
      try system.makeDirectory(out.path, permissions: .init(rawValue: 0o755))
      do {
        try system.writeAtomically(
          source.contents, to: out.path.appending("contents"), replacing: false, permissions: .init(rawValue: 0o644))
      } catch {
        // Report the first error.
        try? system.removeDirectory(out.path)
        throw error
      }
      return source.omissions
    }
  }
}

extension ModelBundle {
  /// Returns the version of a name.
  ///
  /// - Throws: its own error if it is unreadable, `model-version-order` if it is missing.
  func readableVersion(_ name: String, at path: FilePath) throws -> ModelVersion {
    if let version = version(named: name) { return version }
    if let unreadable = unreadableVersions.first(where: { $0.name == name }) { throw unreadable.error }
    throw lacksVersion(name, at: path)
  }

  fileprivate func lacksVersion(_ name: String, at path: FilePath) -> ModelError {
    let names = versions.map { printable($0.name) }.joined(separator: ", ")
    return ModelError(.versionOrder, path: path, detail: "it has no version \"\(printable(name))\"; it has \(names)")
  }
}
