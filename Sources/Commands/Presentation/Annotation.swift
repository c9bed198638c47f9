import ArgumentParser
import Foundation
import ManagedObjectModel
import Migration
import Platform
import SwiftModelSources
import SystemPackage

enum AnnotationStyle: String, ExpressibleByArgument, CaseIterable {
  /// Workflow commands of GitHub Actions, shown in a pull request's changes.
  case github

  /// Compiler lines, as Xcode and most editors read.
  case xcode
}

struct AnnotationOptions: ParsableArguments {
  @Option(
    help: .text(
      "Print each finding once more for a build server or an editor, with file and line: github or xcode.", "style"))
  var annotate: AnnotationStyle?
}

struct Annotation: Hashable {
  var isError: Bool
  var file: String?
  var line: Int?
  var title: String
  var message: String

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

  /// The path within the server's checkout, as its pages require.
  private static func relative(_ file: String) -> String {
    guard let folder = ProcessInfo.processInfo.environment["GITHUB_WORKSPACE"], !folder.isEmpty else { return file }
    let root = folder.hasSuffix("/") ? folder : folder + "/"
    return file.hasPrefix(root) ? String(file.dropFirst(root.count)) : file
  }

  /// Escapes a workflow command's message (https://docs.github.com/actions, "Workflow commands").
  private static func escaped(_ text: String) -> String {
    text.unicodeScalars.map { scalar in
      switch scalar {
      case "%": "%25"
      case "\r": "%0D"
      case "\n": "%0A"
      default: String(scalar)
      }
    }.joined()
  }

  /// Escapes a property, which ends at a comma or colon.
  private static func escapedProperty(_ text: String) -> String {
    escaped(text).map { $0 == ":" ? "%3A" : $0 == "," ? "%2C" : String($0) }.joined()
  }
}

struct ModelPlaces {
  private let bundle: ModelBundle
  private let sources: SourceModels?
  private let lines: [String: ModelSourceLines]

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

  /// Finds an entity or property; the model itself without sources.
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

  /// Returns the version at the end of a place: a step refers to its newer one.
  func version(of place: String) -> String? {
    (bundle.versions + bundle.unorderedVersions).map(\.name)
      .filter { place == $0 || place.hasSuffix(" → \($0)") }.max { $0.utf8.count < $1.utf8.count }
  }

  func place(of finding: LintFinding) -> (file: String, line: Int?)? {
    version(of: finding.place).flatMap { place($0, finding.entityName, finding.propertyName) }
  }
}

extension Annotation {
  init(_ finding: LintFinding) {
    self.init(
      isError: finding.severity == .error, file: finding.file, line: finding.line,
      title: "\(finding.place) [\(finding.rule.rawValue)]", message: "\(finding.detail). \(finding.hint)")
  }
}
