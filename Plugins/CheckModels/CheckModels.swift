import Foundation
import PackagePlugin

/// `swift package check-models`: checks the models of a package, with file and line for editors.
///
/// SwiftData's sources are read where they are given with `--model`, and this package with its trait `SwiftSources`.
/// Options are passed on to `lazaret model lint` and `lazaret model verify`, each to the one that knows it.
@main
struct CheckModels: CommandPlugin {
  func performCommand(context: PluginContext, arguments: [String]) throws {
    var extractor = ArgumentExtractor(arguments)
    let chosen = extractor.extractOption(named: "target")
    let isOnlyLint = extractor.extractFlag(named: "only-lint") > 0
    let isOnlyVerify = extractor.extractFlag(named: "only-verify") > 0
    var models = extractor.extractOption(named: "model").map { URL(filePath: $0) }
    let rules = Rules(&extractor)
    let others = extractor.remainingArguments
    guard others.isEmpty else {
      Diagnostics.error("Unknown arguments: \(others.joined(separator: " ")). \(Self.usage)")
      return
    }
    if models.isEmpty {
      let targets = chosen.isEmpty ? context.package.targets : try context.package.targets(named: chosen)
      models = targets.flatMap { Self.models(in: $0) }
    }
    guard !models.isEmpty else {
      Diagnostics.error(
        "The package's targets have no .xcdatamodeld; give SwiftData's sources with --model. \(Self.usage)")
      return
    }
    guard let tool = try tool() else { return }
    for model in models {
      if !isOnlyVerify { try check("lint", model, rules.lint, with: tool) }
      if !isOnlyLint { try check("verify", model, rules.verify, with: tool) }
    }
  }

  private static let usage = """
    Usage: swift package check-models [--target <name>] [--model <path>] [--lock <file>] [--versions <names>] \
    [--types <names>] [--platform <platform>] [--define <flag>] [--cloudkit] \
    [--rows <n>] [--allow-losses] [--allow-conditions] [--mapping <file>] [--only-lint] [--only-verify]
    """

  /// What is passed on to each of the two checks.
  private struct Rules {
    var lint: [String] = []
    var verify: [String] = []

    init(_ extractor: inout ArgumentExtractor) {
      for name in ["lock", "versions", "types", "platform", "define"] {
        for value in extractor.extractOption(named: name) {
          lint += ["--\(name)", value]
          verify += ["--\(name)", value]
        }
      }
      if extractor.extractFlag(named: "cloudkit") > 0 { lint.append("--cloudkit") }
      for name in ["rows", "mapping", "seed", "junit"] {
        for value in extractor.extractOption(named: name) { verify += ["--\(name)", value] }
      }
      for name in ["allow-losses", "allow-conditions"] where extractor.extractFlag(named: name) > 0 {
        verify.append("--\(name)")
      }
    }
  }

  /// Builds `lazaret` and says where it is; nil where that failed, which is told.
  private func tool() throws -> URL? {
    let build = try packageManager.build(.product("lazaret"), parameters: .init(configuration: .release))
    let program = build.builtArtifacts.first { $0.kind == .executable && $0.url.lastPathComponent == "lazaret" }
    guard build.succeeded, let program else {
      print(build.logText)
      Diagnostics.error("lazaret could not be built.")
      return nil
    }
    return program.url
  }

  /// The models among a target's files, and among the resources that lie in its folder.
  private static func models(in target: any Target) -> [URL] {
    var found: Set<URL> = []
    if let source = target as? any SourceModuleTarget {
      for file in source.sourceFiles {
        var url = file.url
        while url.pathComponents.count > 1, url.pathExtension != "xcdatamodeld" { url.deleteLastPathComponent() }
        if url.pathExtension == "xcdatamodeld" { found.insert(url.standardizedFileURL) }
      }
    }
    let files = FileManager.default.enumerator(at: target.directoryURL, includingPropertiesForKeys: nil)
    while let url = files?.nextObject() as? URL {
      guard url.pathExtension == "xcdatamodeld" else { continue }
      files?.skipDescendants()
      found.insert(url.standardizedFileURL)
    }
    return found.sorted { $0.path() < $1.path() }
  }

  /// Runs one check, and tells its findings as diagnostics of the package.
  private func check(_ verb: String, _ model: URL, _ rules: [String], with tool: URL) throws {
    let process = Process()
    process.executableURL = tool
    process.arguments = ["model", verb, model.path(percentEncoded: false), "--annotate", "xcode"] + rules
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    print(text, terminator: "")
    let name = model.lastPathComponent
    switch process.terminationStatus {
    case 0: break
    case 2 where verb == "verify": Diagnostics.warning("\(name): something would be lost, or depends on the records.")
    case 2:
      // Warnings may be meant; what cannot be migrated may not.
      let hasErrors = text.split(separator: "\n").contains { $0.contains(": error: ") }
      if hasErrors {
        Diagnostics.error("\(name): stores in the field cannot be migrated.")
      } else {
        Diagnostics.warning("\(name): a change would lose something, or depends on the records.")
      }
    case let status: Diagnostics.error("\(name): lazaret model \(verb) ended with \(status).")
    }
  }
}
