import ArgumentParser
import Foundation
import ManagedObjectModel
import Migration
import Platform
import SwiftModelSources
import SystemPackage

/// How findings are told to a build server or an editor, with the file and the line that each is about.
enum AnnotationStyle: String, ExpressibleByArgument, CaseIterable {
  /// Workflow commands of GitHub Actions, which shows them in the changes of a pull request.
  case github

  /// The lines of a compiler, which Xcode and most editors show beside the source.
  case xcode
}

/// Whether annotations are printed besides the text.
struct AnnotationOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Print each finding once more for a build server or an editor, with file and line: github or xcode.",
      valueName: "style"))
  var annotate: AnnotationStyle?
}

/// A finding with the place in a source file that it is about.
struct Annotation: Hashable {
  var isError: Bool
  var file: String?
  var line: Int?
  var title: String
  var message: String

  /// The line that is printed, without its end.
  func text(_ style: AnnotationStyle) -> String {
    let level = isError ? "error" : "warning"
    switch style {
    case .github:
      var properties: [String] = []
      if let file {
        properties.append("file=\(Self.escapedProperty(Self.relative(file)))")
        if let line { properties.append("line=\(line)") }
      }
      properties.append("title=\(Self.escapedProperty(title))")
      return "::\(level) \(properties.joined(separator: ","))::\(Self.escaped(message))"
    case .xcode:
      let place = file.map { "\(printable($0)):\(line ?? 1): " } ?? ""
      return "\(place)\(level): \(printable(title)): \(printable(message))"
    }
  }

  /// The path below the folder that the server has checked out, which is what its pages know.
  private static func relative(_ file: String) -> String {
    guard let folder = ProcessInfo.processInfo.environment["GITHUB_WORKSPACE"], !folder.isEmpty else { return file }
    let root = folder.hasSuffix("/") ? folder : folder + "/"
    return file.hasPrefix(root) ? String(file.dropFirst(root.count)) : file
  }

  /// What a message of a workflow command may hold (https://docs.github.com/actions, "Workflow commands").
  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "%": result += "%25"
      case "\r": result += "%0D"
      case "\n": result += "%0A"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// The same of a property, which ends at a comma or a colon.
  private static func escapedProperty(_ text: String) -> String {
    escaped(text).map { $0 == ":" ? "%3A" : $0 == "," ? "%2C" : String($0) }.joined()
  }
}

/// The lines of a model's versions in their sources.
struct ModelPlaces {
  private let bundle: ModelBundle
  private let sources: SourceModels?
  private let lines: [String: ModelSourceLines]

  /// The lines of a bundle's versions.
  ///
  /// - Parameter sources: what Swift sources declare, where the bundle was read from them.
  init(_ bundle: ModelBundle, sources: SourceModels?) {
    self.bundle = bundle
    self.sources = sources
    var lines: [String: ModelSourceLines] = [:]
    guard sources == nil else {
      self.lines = lines
      return
    }
    for version in bundle.versions + bundle.unorderedVersions {
      lines[version.name] = ModelSourceLines(version.name, of: bundle)
    }
    self.lines = lines
  }

  /// The file and the line of an entity or a property of a version; the model itself where it has no source.
  func place(_ version: String, _ entity: String?, _ property: String?) -> (file: String, line: Int?)? {
    if let sources {
      let place =
        sources.place(version: version, entity: entity, property: property)
        ?? sources.place(version: sources.currentName, entity: entity, property: property)
      return place.map { ($0.file, $0.line) }
    }
    guard let found = lines[version] else { return bundle.path.map { ($0.string, nil) } }
    return (found.file.string, found.line(entity: entity, property: property))
  }

  /// The version that a version's or a step's name ends with: a step is about the newer one.
  func version(of place: String) -> String? {
    (bundle.versions + bundle.unorderedVersions).map(\.name)
      .filter { place == $0 || place.hasSuffix(" → \($0)") }.max { $0.utf8.count < $1.utf8.count }
  }

  /// The file and the line that a finding of the lint is about.
  func place(of finding: LintFinding) -> (file: String, line: Int?)? {
    version(of: finding.place).flatMap { place($0, finding.entityName, finding.propertyName) }
  }
}

extension Annotation {
  /// A finding of the lint.
  init(_ finding: LintFinding) {
    self.init(
      isError: finding.severity == .error, file: finding.file, line: finding.line,
      title: "\(finding.place) [\(finding.rule.rawValue)]", message: "\(finding.detail). \(finding.hint)")
  }
}
