package import Backup
package import Platform
import SystemPackage

/// The source of S3 settings: environment variables and the files of Amazon's tools.
package struct S3Environment: Sendable {
  var variable: @Sendable (_ name: String) -> String?

  var fileSystem: FileSystem

  package init(fileSystem: FileSystem = FileSystem(), variable: @escaping @Sendable (_ name: String) -> String?) {
    self.variable = variable
    self.fileSystem = fileSystem
  }

  private static let operation = "read the settings of the object storage"

  /// Reads a bucket's settings; variables override files, as with Amazon's tools.
  ///
  /// - Throws: `s3-settings`, `s3-credentials`.
  package func settings(for address: S3Address) throws(BackupError) -> S3Settings {
    let isNamed = value("AWS_PROFILE") != nil
    let profile = value("AWS_PROFILE") ?? value("AWS_DEFAULT_PROFILE") ?? "default"
    let section = profile == "default" ? "default" : "profile \(profile)"
    let secrets = try file("AWS_SHARED_CREDENTIALS_FILE", or: "credentials")
    let config = try file("AWS_CONFIG_FILE", or: "config")
    let configured: (String) -> String? = { name in
      config?.value(name, in: section) ?? (section == "default" ? config?.value(name, in: "profile default") : nil)
    }
    let given = value("AWS_ENDPOINT_URL_S3") ?? value("AWS_ENDPOINT_URL") ?? configured("endpoint_url")
    let region = value("AWS_REGION") ?? value("AWS_DEFAULT_REGION") ?? configured("region") ?? "us-east-1"
    guard region.utf8.count <= 64, region.utf8.allSatisfy({ $0.isOfWord && $0 != UInt8(ascii: ".") }) else {
      throw Self.refused("the region is not one that a server can have")
    }
    let endpoint = try given.map { text throws(BackupError) in try self.endpoint(text) } ?? .amazon(region)
    let style = value("LAZARET_S3_ADDRESSING") ?? configured("s3.addressing_style") ?? "auto"
    // Amazon's wildcard certificates cover one label only.
    let isPath = given != nil || address.bucket.contains(".")
    let usesPathStyle: Bool
    switch style {
    case "auto": usesPathStyle = isPath
    case "path": usesPathStyle = true
    case "virtual": usesPathStyle = false
    default: throw Self.refused("the addressing style is neither path nor virtual nor auto")
    }
    let credentials = try credentials(secrets, configured, profile, isNamed: isNamed)
    return S3Settings(
      endpoint: endpoint, region: region, usesPathStyle: usesPathStyle, credentials: credentials,
      authorities: value("AWS_CA_BUNDLE"))
  }

  /// Creates a client that rereads expired credentials.
  ///
  /// - Throws: `s3-settings`, `s3-credentials`.
  package func client(for address: S3Address, retries: S3RetryPolicy = S3RetryPolicy()) throws(BackupError) -> S3Client
  {
    var settings = try settings(for: address)
    settings.retries = retries
    return S3Client(address.bucket, settings) { [self] in
      // If rereading fails, report the expired ones.
      try? self.settings(for: address).credentials
    }
  }

  // MARK: Parts

  private func credentials(
    _ secrets: AmazonConfiguration?, _ configured: @escaping (String) -> String?, _ profile: String, isNamed: Bool
  ) throws(BackupError) -> S3Credentials {
    // Variables override any profile, as with Amazon's tools.
    let variables = (value("AWS_ACCESS_KEY_ID"), value("AWS_SECRET_ACCESS_KEY"))
    switch variables {
    case (let name?, let secret?): return try checked(name, secret, value("AWS_SESSION_TOKEN"))
    case (nil, nil): break
    default: throw Self.missing("only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set")
    }
    for read in [{ secrets?.value($0, in: profile) }, configured] {
      guard let name = read("aws_access_key_id"), let secret = read("aws_secret_access_key") else { continue }
      return try checked(name, secret, read("aws_session_token"))
    }
    let others = ["credential_process", "role_arn", "sso_session", "sso_start_url", "web_identity_token_file"]
    if let other = others.first(where: { configured($0) != nil || secrets?.value($0, in: profile) != nil }) {
      throw Self.missing("the profile gets its credentials by \(other), which this software does not do")
    }
    throw Self.missing(
      isNamed
        ? "the profile \(printable(profile)) has none, in ~/.aws/credentials or ~/.aws/config"
        : "neither the environment nor ~/.aws/credentials has any")
  }

  private func checked(_ name: String, _ secret: String, _ token: String?) throws(BackupError) -> S3Credentials {
    // A line break would inject a header field.
    for text in [name, secret, token ?? ""] {
      guard text.utf8.count <= 16384, text.utf8.allSatisfy({ (33...126).contains($0) }) else {
        throw Self.missing("they contain characters that credentials cannot have")
      }
    }
    return S3Credentials(accessKey: name, secretKey: secret, sessionToken: token)
  }

  private func endpoint(_ text: String) throws(BackupError) -> S3Endpoint {
    guard let endpoint = S3Endpoint(text) else {
      throw Self.refused("the endpoint is no address such as https://storage.example:9000")
    }
    guard endpoint.isEncrypted || endpoint.isLoopback || value("LAZARET_S3_ALLOW_HTTP") == "1" else {
      throw BackupError(
        .s3Settings, operation: Self.operation,
        detail: "the endpoint is reached without encryption, and is not this machine",
        hint: "Use https, or set LAZARET_S3_ALLOW_HTTP=1 where the network between is trusted.")
    }
    return endpoint
  }

  private func value(_ name: String) -> String? { variable(name).flatMap { $0.isEmpty ? nil : $0 } }

  /// The file that a variable names, or the default one if it exists.
  private func file(_ name: String, or usual: String) throws(BackupError) -> AmazonConfiguration? {
    let path: FilePath
    if let given = value(name) {
      path = FilePath(given)
    } else if let home = value("HOME") {
      path = FilePath(home).appending(".aws").appending(usual)
    } else {
      return nil
    }
    do throws(FileError) {
      let bytes = try fileSystem.contents(of: path, limit: AmazonConfiguration.limit)
      guard let text = String(utf8: bytes) else { throw FileError(.other, operation: "read", detail: "it is no text") }
      return AmazonConfiguration(text)
    } catch {
      guard error.kind != .notFound else { return nil }
      throw BackupError(.s3Settings, because: error, operation: Self.operation, path: path)
    }
  }

  private static func refused(_ detail: String) -> BackupError {
    BackupError(.s3Settings, operation: operation, detail: detail)
  }

  private static func missing(_ detail: String) -> BackupError {
    BackupError(.s3Credentials, operation: "find the credentials of the object storage", detail: detail)
  }
}

/// Credentials, which no description reveals.
package struct S3Credentials: Sendable, Hashable {
  package let accessKey: String

  let secretKey: String

  /// The token of temporary credentials.
  let sessionToken: String?

  package init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }
}

extension S3Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "credentials" }

  package var debugDescription: String { description }

  package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A settings file of Amazon's tools: sections of `name = value` lines.
///
/// (AWS SDKs and Tools Reference Guide, "Shared config and credentials files".) Indented lines belong to the line
/// before.
struct AmazonConfiguration {
  static let limit = 1 << 20

  private var sections: [String: [String: String]] = [:]

  /// Parses a file, ignoring other lines, as Amazon's tools do.
  init(_ text: String) {
    var (section, parent) = (nil as String?, nil as String?)
    for line in text.split(whereSeparator: \.isNewline) {
      let isIndented = line.first == " " || line.first == "\t"
      let content = Self.trimmed(line)
      guard let first = content.first, first != "#", first != ";" else { continue }
      if first == "[" {
        guard let end = content.firstIndex(of: "]") else { continue }
        let words = content[content.index(after: content.startIndex)..<end].split(whereSeparator: \.isWhitespace)
        section = words.joined(separator: " ")
        parent = nil
        continue
      }
      guard let section, let equals = content.firstIndex(of: "=") else { continue }
      let name = Self.trimmed(content[..<equals]).lowercased()
      let value = Self.value(content[content.index(after: equals)...])
      if isIndented, let parent {
        sections[section, default: [:]]["\(parent).\(name)"] = value
      } else {
        parent = value.isEmpty ? name : nil
        sections[section, default: [:]][name] = value
      }
    }
  }

  func has(_ section: String) -> Bool { sections[section] != nil }

  /// A non-empty setting; nested ones are named `s3.name`.
  func value(_ name: String, in section: String) -> String? {
    sections[section]?[name].flatMap { $0.isEmpty ? nil : $0 }
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text.drop(while: \.isWhitespace)
    while text.last?.isWhitespace == true { text.removeLast() }
    return text
  }

  /// Strips a comment after a space.
  private static func value(_ text: Substring) -> String {
    var end = text.startIndex
    var isAfterSpace = true
    while end < text.endIndex {
      if isAfterSpace, text[end] == "#" || text[end] == ";" { break }
      isAfterSpace = text[end].isWhitespace
      end = text.index(after: end)
    }
    return String(trimmed(text[..<end]))
  }
}
