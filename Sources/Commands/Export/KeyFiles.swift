import Lazaret

/// Files with keys, and keys on the command line.
enum KeyFiles {
  private static let limit = 1 << 20

  /// The recipients that texts stand for: keys themselves, or files with one on a line.
  static func recipients(_ texts: [String]) throws -> [AgeRecipient] {
    var result: [AgeRecipient] = []
    for text in texts {
      if text.lowercased().hasPrefix("age1") {
        do throws(AgeError) {
          result.append(try AgeRecipient(text))
        } catch {
          throw KeyFileError(path: nil, detail: error.detail, code: error.code)
        }
        continue
      }
      let path = RawArguments.path(of: text)
      let lines = String(decoding: try FileSystem().contents(of: path, limit: limit), as: UTF8.self)
        .split(whereSeparator: \.isNewline).map(String.init)
      var found = 0
      for (number, line) in lines.enumerated() where !line.hasPrefix("#") && !line.allSatisfy(\.isWhitespace) {
        do throws(AgeError) {
          result.append(
            line.uppercased().hasPrefix("AGE-SECRET-KEY-") ? try AgeIdentity(line).recipient : try AgeRecipient(line))
        } catch {
          throw KeyFileError(path: path, detail: "line \(number + 1): \(error.detail)", code: error.code)
        }
        found += 1
      }
      guard found > 0 else { throw KeyFileError(path: path, detail: "it holds no key", code: "age-recipient") }
    }
    return result
  }

  /// The secret keys in files.
  static func identities(_ paths: [FilePath]) throws -> [AgeIdentity] {
    var result: [AgeIdentity] = []
    for path in paths {
      let text = String(decoding: try FileSystem().contents(of: path, limit: limit), as: UTF8.self)
      do throws(AgeError) {
        result += try AgeIdentity.identities(in: text)
      } catch {
        throw KeyFileError(path: path, detail: error.detail, code: error.code)
      }
    }
    return result
  }
}

/// A key that cannot be used.
struct KeyFileError: ReportableError {
  var path: FilePath?
  var detail: String
  var code: String
  var operation: String { "read the key" }
  var hint: String { "Give a public key that begins with age1, or a file that lazaret key new or age-keygen wrote." }
}
